"""Scans: pages drawn by Pillow, and bound by img2pdf, reportlab and pikepdf as scanners and printers do it."""

import struct
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import img2pdf
import pikepdf
from PIL import Image, ImageDraw, ImageFont, ImageOps
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

WIDTH, HEIGHT = A4
SIZE = (1000, 1414)
# No two pages show the same line of these.
SHIPS = [
    *["Albatross", "Bittern", "Cormorant", "Dunlin", "Egret", "Fulmar", "Gannet"],
    *["Heron", "Osprey", "Jackdaw", "Kestrel", "Lapwing", "Merlin", "Nightjar"],
]
TYPED = [f"Line {number} of this page was typed, and says that the tide was low." for number in range(1, 6)]
LAYER = [f"Layer line {number} is what somebody read on this page before." for number in range(1, 6)]
# Longer than the minimum text of a page, like the marks of archives and signatures.
STAMP = ["Signed under number 0123456789 by Ada Quay on 1 March 2024 at half past nine,", "received on Monday."]
STAMP += ["Kept by the harbour office for ten years."]
FIGURE, LOGO = ["Depth of the basin", "seven fathoms"], ["Harbour Company", "founded 1871"]


def lines(ship: str) -> list[str]:
    """What a scan shows."""
    return [
        f"The {ship} arrived from the north",
        "with timber, salt and copper.",
        f"Twelve men of the {ship} went ashore.",
    ]


def drawn(shown: Iterable[str], size: tuple[int, int] = SIZE, height: int = 36, mode: str = "RGB") -> Image.Image:
    image = Image.new("RGB", size, "white")
    font = ImageFont.load_default(size=height)
    ImageDraw.Draw(image).multiline_text((2 * height, 2 * height), "\n".join(shown), "black", font, spacing=height // 2)
    return image.convert(mode)


def saved(image: Image.Image, form: str, **options: object) -> bytes:
    file = BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def sixteen_bits(image: Image.Image) -> Image.Image:
    """Each byte twice is the same gray, of 65,536."""
    gray = image.convert("L")
    return Image.frombytes("I;16", gray.size, bytes(byte for dot in gray.tobytes() for byte in (dot, dot)))


def jbig2(image: Image.Image) -> bytes:
    """A page with one region that is packed as faxes are, which Pillow can do."""
    # In JBIG2, 1 is black.
    negative = ImageOps.invert(image.convert("L")).convert("1")
    with Image.open(BytesIO(saved(negative, "TIFF", compression="group4", strip_size=1 << 30))) as fax:
        (offset,), (count,) = fax.tag_v2[273], fax.tag_v2[279]
        fax.fp.seek(offset)
        packed = fax.fp.read(count)
    width, height = image.size
    page = struct.pack(">IIIIBH", width, height, 0, 0, 0, 0)
    region = struct.pack(">IIIIBB", width, height, 0, 0, 0, 1) + packed
    parts = [(48, page), (38, region), (49, b""), (51, b"")]
    head = b"\x97JB2\r\n\x1a\n" + struct.pack(">BI", 1, 1)
    return head + b"".join(
        struct.pack(">IBBBI", number, kind, 0, 1, len(content)) + content
        for number, (kind, content) in enumerate(parts)
    )


# Storage variants by name.
STORED = {
    "JPEG": lambda image: saved(image, "JPEG", quality=80),
    "progressive JPEG": lambda image: saved(image, "JPEG", progressive=True),
    "gray JPEG": lambda image: saved(image.convert("L"), "JPEG"),
    "JPEG in CMYK": lambda image: saved(image.convert("CMYK"), "JPEG"),
    "CCITT G4": lambda image: saved(image.convert("1"), "TIFF", compression="group4"),
    "JBIG2": jbig2,
    "JPEG 2000": lambda image: saved(image, "JPEG2000"),
    "PNG of 1 bit": lambda image: saved(image.convert("1"), "PNG"),
    "gray PNG": lambda image: saved(image.convert("L"), "PNG"),
    "PNG in colour": lambda image: saved(image, "PNG"),
    "PNG of 16 bits": lambda image: saved(sixteen_bits(image), "PNG"),
    "PNG with a palette": lambda image: saved(image.quantize(16), "PNG"),
}


def bound(path: Path, pictures: Iterable[bytes]) -> None:
    layout = img2pdf.get_layout_fun((img2pdf.mm_to_pt(210), img2pdf.mm_to_pt(297)))
    path.write_bytes(img2pdf.convert([BytesIO(picture) for picture in pictures], layout_fun=layout))


def scans(path: Path, ships: Iterable[str]) -> None:
    bound(path, (saved(drawn(lines(ship)), "JPEG") for ship in ships))


def all_kinds(path: Path) -> None:
    bound(path, (store(drawn(lines(ship))) for ship, store in zip(SHIPS, STORED.values(), strict=False)))


def turned(path: Path, angles: Iterable[int], *, upright: bool) -> None:
    """Pages to be turned by their reader. Those that are not upright then lie on their side or head."""
    made = BytesIO()
    pictures = []
    for ship, angle in zip(SHIPS, angles, strict=False):
        image = drawn(lines(ship))
        pictures.append(saved(image.rotate(angle, expand=True) if upright else image, "PNG"))
    made.write(img2pdf.convert([BytesIO(picture) for picture in pictures]))
    with pikepdf.open(made) as document:
        for page, angle in zip(document.pages, angles, strict=True):
            page.Rotate = angle
        document.save(path)


# The matrix from the unit square to the page, and the transformation of a picture that makes it upright.
MATRICES = {
    "on its head": ((-WIDTH, 0, 0, -HEIGHT, WIDTH, HEIGHT), lambda image: image.rotate(180)),
    "on its side": ((0, HEIGHT, -WIDTH, 0, WIDTH, 0), lambda image: image.rotate(-90, expand=True)),
    "from below": ((WIDTH, 0, 0, -HEIGHT, 0, HEIGHT), ImageOps.flip),
    "in a mirror": ((-WIDTH, 0, 0, HEIGHT, WIDTH, 0), ImageOps.mirror),
}


def by_matrix(path: Path) -> None:
    canvas = Canvas(str(path), pagesize=A4)
    for ship, (matrix, change) in zip(SHIPS, MATRICES.values(), strict=False):
        canvas.transform(*matrix)
        canvas.drawImage(ImageReader(change(drawn(lines(ship)))), 0, 0, 1, 1)
        canvas.showPage()
    canvas.save()


def type_page(canvas: Canvas, typed: Iterable[str] = TYPED, top: float = 760, hidden: bool = False) -> None:
    text = canvas.beginText(72, top)
    text.setFont("Helvetica", 11)
    text.setTextRenderMode(3 if hidden else 0)
    text.textLines("\n".join(typed))
    canvas.drawText(text)


def scan_page(canvas: Canvas, ship: str) -> None:
    canvas.drawImage(ImageReader(drawn(lines(ship))), 0, 0, WIDTH, HEIGHT)


def hybrid(path: Path) -> None:
    """Typed, scanned, typed, scanned."""
    canvas = Canvas(str(path), pagesize=A4)
    for ship in SHIPS[:2]:
        type_page(canvas)
        canvas.showPage()
        scan_page(canvas, ship)
        canvas.showPage()
    canvas.save()


def with_layer(path: Path, layer: Iterable[str], ship: str) -> None:
    canvas = Canvas(str(path), pagesize=A4)
    scan_page(canvas, ship)
    type_page(canvas, layer, hidden=True)
    canvas.save()


def with_stamp(path: Path, ship: str) -> None:
    """A scan with words typed below what it shows."""
    canvas = Canvas(str(path), pagesize=A4)
    scan_page(canvas, ship)
    type_page(canvas, STAMP, top=60)
    canvas.save()


def with_figure(path: Path) -> None:
    """Text, a figure, and text below it."""
    canvas = Canvas(str(path), pagesize=A4)
    type_page(canvas)
    canvas.drawImage(ImageReader(drawn(FIGURE, (600, 300), 40)), 72, 450, 300, 150)
    type_page(canvas, [line.replace("typed", "added") for line in TYPED], top=400)
    canvas.save()


def with_logo(path: Path, pages: int) -> None:
    canvas = Canvas(str(path), pagesize=A4)
    logo = ImageReader(drawn(LOGO, (600, 200), 40))
    for number in range(1, pages + 1):
        canvas.drawImage(logo, 72, 780, 150, 50)
        type_page(canvas, [f"{line} That was page {number}." for line in TYPED], top=700)
        canvas.showPage()
    canvas.save()


def with_copies_of_logo(source: Path, path: Path) -> None:
    """As when files are put together: each page has a logo of its own, and all are the same."""
    with pikepdf.open(source) as document:
        for page in document.pages:
            ((name, logo),) = page.get_images().items()
            copy = document.make_stream(logo.read_raw_bytes())
            for key in logo.keys() - {"/Length"}:
                copy[key] = logo[key]
            page.Resources.XObject = pikepdf.Dictionary({name: copy})
        document.save(path)


def in_strips(path: Path, ship: str, strips: int) -> None:
    """Many scanners cut a page into bands, wherever lines of text may be."""
    canvas = Canvas(str(path), pagesize=A4)
    image = drawn(lines(ship))
    edges = [SIZE[1] * strip // strips for strip in range(strips + 1)]
    for top, bottom in zip(edges, edges[1:], strict=False):
        band = image.crop((0, top, SIZE[0], bottom))
        canvas.drawImage(
            ImageReader(band), 0, HEIGHT * (1 - bottom / SIZE[1]), WIDTH, HEIGHT * (bottom - top) / SIZE[1]
        )
    canvas.save()


def stencil(path: Path, ship: str) -> None:
    """Black paint through a mask, over a picture of the paper: what programs make of scans to keep them small."""
    made = BytesIO()
    canvas = Canvas(made, pagesize=A4)
    canvas.drawImage(ImageReader(Image.new("RGB", (50, 70), "beige")), 0, 0, WIDTH, HEIGHT)
    canvas.save()
    with pikepdf.open(made) as document:
        mask = document.make_stream(drawn(lines(ship), mode="1").tobytes())
        for key, value in {
            "/Type": pikepdf.Name.XObject, "/Subtype": pikepdf.Name.Image, "/Width": SIZE[0], "/Height": SIZE[1],
            "/ImageMask": True, "/BitsPerComponent": 1, "/Decode": [0, 1],
        }.items():  # fmt: skip
            mask[key] = value
        page = document.pages[0]
        page.Resources.XObject["/Mask"] = mask
        page.contents_add(f"q 0.1 g {WIDTH} 0 0 {HEIGHT} 0 0 cm /Mask Do Q".encode())
        document.save(path)


def dense(path: Path) -> None:
    """A page whose picture claims 1,200 dots an inch, as cameras do: it is no larger than a matchbox."""
    page = drawn((line for ship in SHIPS for line in lines(ship)), (1654, 2339), 32)
    path.write_bytes(img2pdf.convert(BytesIO(saved(page, "JPEG", dpi=(1200, 1200)))))


def spoilt(path: Path, ship: str, *, unknown: bool) -> None:
    """A scan whose picture ends too early, or is packed in a way that nobody knows."""
    made = BytesIO(img2pdf.convert(BytesIO(saved(drawn(lines(ship)), "JPEG"))))
    with pikepdf.open(made) as document:
        (image,) = document.pages[0].get_images().values()
        content = image.read_raw_bytes()
        image.write(content[: len(content) // 2], filter=pikepdf.Name("/UnknownDecode" if unknown else "/DCTDecode"))
        document.save(path)
