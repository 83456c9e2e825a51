"""Pictures, alone and inside office documents: their words, or else what is known about them."""

from pathlib import Path

import documents_albums as albums
import documents_photos as photos
import documents_scans as scans
from checks import Checks, same
from documents import refused
from documents_process import Corbie, blocks
from documents_scans import SHIPS
from documents_assertions import reads, said
from PIL import Image, ImageOps

HUGE = 40_000
CUTS = 10


def office(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "album.docx"
    albums.word(path)
    read = corbie.opened(path)
    wanted = [("heading", "Crates")]
    for form, ship in albums.WORD.items():
        wanted += [("paragraph", f"Before the {form}."), ("image", " ".join(photos.label(ship)))]
    wanted += [("paragraph", "After the pictures."), ("table", "In a table")]
    wanted += [("image", " ".join(photos.label("Nightjar")))]
    same(
        checks, "DOCX: words where pictures stand (K-35)", [(each["kind"], said(each)) for each in blocks(read)], wanted
    )
    same(
        checks,
        "DOCX: under their heading",
        {*map(tuple, (each["path"] for each in blocks(read, "image")))},
        {("Crates",)},
    )
    same(checks, "DOCX: the method (K-32)", read["processing_method"], "hybrid")
    path = corbie.folder / "album.pptx"
    albums.slides(path)
    in_pages(checks, corbie, path, albums.WORD)
    for make, held in [(albums.openpyxl_workbook, albums.SHEET), (albums.xlsxwriter_workbook, albums.XLSXWRITER)]:
        path = corbie.folder / f"{make.__name__}.xlsx"
        make(path)
        in_pages(checks, corbie, path, held)


def in_pages(checks: Checks, corbie: Corbie, path: Path, held: dict[str, str]) -> None:
    """A picture of another kind on each slide or sheet."""
    read = corbie.opened(path)
    for page, (form, ship) in zip(read["pages"], held.items(), strict=True):
        found = [said(block) for block in page["blocks"] if block["kind"] == "image"]
        same(checks, f"{path.name}: {form} (K-35)", found, [" ".join(photos.label(ship))])
    same(checks, f"{path.name}: the method (K-32)", read["processing_method"], "hybrid")


def orientations(checks: Checks, corbie: Corbie) -> None:
    paths = []
    for orientation in photos.ORIENTATIONS:
        for form in ["jpg", "png"]:
            paths.append(corbie.folder / f"orientation-{orientation}.{form}")
            photos.turned(paths[-1], orientation, SHIPS[orientation])
            with Image.open(paths[-1]) as image:
                same(checks, f"{paths[-1].name}: upright for Pillow", ImageOps.exif_transpose(image).size, photos.SIZE)
    for path, read in zip(paths, corbie.read_all(paths), strict=True):
        orientation = int(path.stem[-1])
        size = (read["metadata"].get("width"), read["metadata"].get("height"))
        same(checks, f"{path.name}: its size the right way up", size, photos.SIZE)
        reads(checks, f"{path.name}: its words (K-35)", read["pages"][0], photos.label(SHIPS[orientation]))


def stored(checks: Checks, corbie: Corbie) -> None:
    paths = []
    for ship, (way, (form, store)) in zip(SHIPS, photos.STORED.items(), strict=True):
        paths.append(corbie.folder / f"{way}.{form}")
        paths[-1].write_bytes(store(photos.labelled(ship)))
    for ship, path, read in zip(SHIPS, paths, corbie.read_all(paths), strict=True):
        reads(checks, f"{path.name} (K-35)", read["pages"][0], photos.label(ship))
        same(checks, f"{path.name}: the method (K-32)", read["processing_method"], "image_analysis")


def scrolled(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "scrolled.png"
    photos.scrolled(path)
    text = said(corbie.opened(path)["pages"][0])
    missing = [row for row in photos.ROWS if row not in text]
    # With this many rows a few may be misread.
    checks.that(
        len(missing) <= 3, "a page of 720 by 10,800 dots", f"{len(missing)} of {len(photos.ROWS)} rows are missing"
    )


def wordless(checks: Checks, corbie: Corbie) -> None:
    folder = corbie.folder
    photos.gradient().save(folder / "evening_over-the_pier.jpg")
    photos.noise().save(folder / "wild gulls.png")
    for form in ["png", "jpg"]:
        photos.dot().save(folder / f"dot.{form}")
    for name, size in {
        "evening_over-the_pier.jpg": "640 by 480",
        "wild gulls.png": "320 by 240",
        "dot.png": "1 by 1",
        "dot.jpg": "1 by 1",
    }.items():
        read = corbie.opened(folder / name)
        (block,) = blocks(read)
        words = Path(name).stem.replace("_", " ").replace("-", " ")
        checks.that(words in said(block) and size in said(block), f"{name} is found by its name and size", said(block))
        same(checks, f"{name}: nothing was read", read["pages"][0].get("confidence"), None)


def known(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "about.jpg"
    photos.about(photos.gradient(), path)
    read = corbie.opened(path)
    about = {"title": "Quiet water", "author": "Ada Quay", "created": "2024-03-01T09:30:00"}
    same(checks, "JPG: EXIF and XMP", {name: read["metadata"].get(name) for name in about}, about)
    found = [said(block) for block in blocks(read)]
    same(checks, "JPG: one line", len(found), 1)
    for wanted in ["Quiet water", "Ada Quay", "2024-03-01", "Kranich K-100", "-53.5458, -9.9750", *photos.KEYWORDS]:
        checks.that(wanted in found[-1], f"JPG: the line has `{wanted}`", found[-1])
    path = corbie.folder / "chunks.png"
    photos.with_text_chunks(photos.gradient(), path)
    found = [said(block) for block in blocks(corbie.opened(path))]
    same(checks, "PNG: one line", len(found), 1)
    for wanted in ["Quiet water", "Jörg Kai", "Seen from the old mole", *photos.KEYWORDS]:
        same(checks, f"PNG: `{wanted}` is told once", " ".join(found).count(wanted), 1)
    photos.about(photos.labelled("Egret"), path := corbie.folder / "label.jpg")
    read = corbie.opened(path)
    reads(checks, "words are worth more than what is known", read["pages"][0], photos.label("Egret"))
    same(checks, "which is told beside them", read["metadata"].get("author"), "Ada Quay")


def huge(checks: Checks, corbie: Corbie) -> None:
    for name, content in photos.claims(HUGE).items():
        path = corbie.folder / name
        path.write_bytes(content)
        refused(checks, corbie, path, "limit_exceeded", f"{name} of {HUGE} by {HUGE} dots (S-12)")


def cut(checks: Checks, corbie: Corbie) -> None:
    for name, form in {"cut.jpg": "JPEG", "cut.png": "PNG"}.items():
        whole = scans.saved(photos.labelled("Heron"), form)
        paths = []
        for at in range(CUTS):
            paths.append(corbie.folder / f"{at}-{name}")
            # The first has little more than the magic bytes.
            paths[-1].write_bytes(whole[: max(len(whole) * at // CUTS, 12)])
        paths.append(corbie.folder / f"last-{name}")
        paths[-1].write_bytes(whole[:-20])
        for path, read in zip(paths, corbie.read_all(paths), strict=True):
            same(checks, f"{path.name} is broken (K-31)", read.get("error"), "corrupted_file")
