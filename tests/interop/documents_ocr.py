"""`corbie extract` reads scans and pictures that others made, and Tesseract, if asked to, reads them for it."""

import argparse
import tempfile
from pathlib import Path

import documents_ocr_engines as engines
import documents_ocr_pictures as pictures
import documents_scans as scans
from checks import Checks, same
from documents import converse, left_behind
from documents_process import Corbie, blocks, texts
from documents_scans import SHIPS
from documents_assertions import reads, reads_ships, said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="path of corbie")
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        corbie = Corbie(parser.parse_args().program, Path(folder))
        for part in [scanned, turned, by_matrix, in_pieces, dense, spoilt, beside_text, layers, stamped, figures]:
            converse(checks, corbie, part)
        for part in [pictures.office, pictures.orientations, pictures.stored, pictures.scrolled, pictures.wordless]:
            converse(checks, corbie, part)
        for part in [pictures.known, pictures.huge, pictures.cut, engines.flags, engines.stdin, engines.scripts]:
            converse(checks, corbie, part)
        for part in [engines.tesseract, engines.without_tesseract, engines.interrupted, engines.killed]:
            converse(checks, corbie, part)
        for part in [engines.workers, left_behind]:
            converse(checks, corbie, part)
    checks.exit()


def scanned(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "kinds.pdf"
    scans.all_kinds(path)
    read = corbie.opened(path)
    reads_ships(checks, read, scans.STORED)
    same(checks, "the method (K-32)", read["processing_method"], "ocr")
    checks.that(all(page.get("scanned") for page in read["pages"]), "pages are told to be scans", str(read)[:300])
    sure = [page.get("confidence", 0) for page in read["pages"]]
    checks.that(all(0.8 < each <= 1 for each in sure), "how sure it is of clean pages", str(sure))
    same(checks, "no warnings", read["warnings"], [])


def turned(checks: Checks, corbie: Corbie) -> None:
    path, angles = corbie.folder / "turned.pdf", [90, 180, 270]
    for upright in [True, False]:
        scans.turned(path, angles, upright=upright)
        way = "upright" if upright else "not upright"
        reads_ships(checks, corbie.opened(path), [f"turned by {angle}, then {way}" for angle in angles])


def by_matrix(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "matrix.pdf"
    scans.by_matrix(path)
    reads_ships(checks, corbie.opened(path), scans.MATRICES)


def in_pieces(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "pieces.pdf"
    scans.in_strips(path, "Merlin", strips=24)
    reads(checks, "a page in 24 strips", corbie.opened(path)["pages"][0], scans.lines("Merlin"))
    scans.stencil(path, "Osprey")
    reads(checks, "paint through a mask", corbie.opened(path)["pages"][0], scans.lines("Osprey"))


def dense(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "dense.pdf"
    scans.dense(path)
    text = said(corbie.read(path)["pages"][0])
    missing = [ship for ship in SHIPS if " ".join(scans.lines(ship)) not in text]
    same(checks, "a picture of many dots on a small page (K-33)", missing, [])


def spoilt(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "spoilt.pdf"
    for unknown, what in [(False, "a picture that ends too early"), (True, "a picture packed in an unknown way")]:
        scans.spoilt(path, "Heron", unknown=unknown)
        told = [warning.get("page") for warning in corbie.read(path)["warnings"]]
        same(checks, f"{what} is a warning (K-37)", told, [1])


def beside_text(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "hybrid.pdf"
    scans.hybrid(path)
    read = corbie.opened(path)
    same(checks, "the method (K-32)", read["processing_method"], "hybrid")
    first, second, third, fourth = read["pages"]
    for typed in [first, third]:
        reads(checks, f"page {typed['number']} is as typed (K-33)", typed, scans.TYPED)
        same(
            checks, f"page {typed['number']} is no scan", (typed.get("scanned"), typed.get("confidence")), (None, None)
        )
    reads(checks, "page 2 is read (K-33)", second, scans.lines(SHIPS[0]))
    reads(checks, "page 4 is read (K-33)", fourth, scans.lines(SHIPS[1]))
    plain = corbie.run(path).out
    same(
        checks,
        "pages parted by a form feed",
        [" ".join(page.split()) for page in plain.split("\f")],
        list(map(said, read["pages"])),
    )
    markdown = " ".join(corbie.run(path, "--markdown").out.split())
    checks.that(" ".join(scans.lines(SHIPS[1])) in markdown, "read in Markdown too", markdown)


def layers(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "layer.pdf"
    scans.with_layer(path, scans.LAYER, "Heron")
    read = corbie.opened(path)
    reads(checks, "a hidden layer is kept, and nothing is read twice (K-33)", read["pages"][0], scans.LAYER)
    same(checks, "the method (K-32)", read["processing_method"], "text_extraction")
    for flag in ["--ocr", "--ocr=force"]:
        read = corbie.opened(path, flag)
        reads(checks, f"{flag} takes what is seen", read["pages"][0], scans.lines("Heron"))
        same(checks, f"{flag}: the method (K-32)", read["processing_method"], "ocr")
    for layer in [scans.lines("Heron")[:2], ["Page 1"]]:
        scans.with_layer(path, layer, "Heron")
        text = said(corbie.opened(path)["pages"][0])
        counts = [text.count(line) for line in scans.lines("Heron")]
        same(checks, f"a layer of {len(layer)} lines: each line once (K-33)", counts, [1, 1, 1])


def stamped(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "stamped.pdf"
    scans.with_stamp(path, "Heron")
    text = said(corbie.opened(path)["pages"][0])
    for what, lines in {"the scan": scans.lines("Heron"), "the stamp": scans.STAMP}.items():
        same(checks, f"{what} is told once (K-35)", text.count(" ".join(lines)), 1)


def figures(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "figure.pdf"
    scans.with_figure(path)
    read = corbie.opened(path)
    kinds = [block["kind"] for block in blocks(read)]
    same(checks, "a figure where it stands (K-35)", kinds, ["paragraph", "image", "paragraph"])
    reads(checks, "its words (K-35)", blocks(read)[1], scans.FIGURE)
    same(checks, "the method (K-32)", read["processing_method"], "hybrid")
    read = corbie.opened(path, "--ocr=off")
    same(checks, "off: no words of it", (texts(read, "image"), read["processing_method"]), ([], "text_extraction"))
    path = corbie.folder / "logo.pdf"
    scans.with_logo(path, pages=4)
    read = corbie.opened(path)
    same(checks, "a logo on every page is read once", list(map(said, blocks(read, "image"))), [" ".join(scans.LOGO)])
    same(checks, "the text of all its pages", len(blocks(read, "paragraph")), 4)
    scans.with_copies_of_logo(path, copies := corbie.folder / "copies.pdf")
    found = list(map(said, blocks(corbie.opened(copies), "image")))
    same(checks, "and so it is if each page has a copy", found, [" ".join(scans.LOGO)])


if __name__ == "__main__":
    main()
