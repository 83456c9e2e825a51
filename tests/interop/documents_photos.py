"""Pictures that Pillow stores in every way that cameras, scanners and browsers do, and some stored by hand."""

import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont, ImageOps
from PIL.PngImagePlugin import PngInfo

from documents_adversarial import chunk
from documents_scans import drawn, saved, sixteen_bits

SIZE = (640, 240)
# The transformation of an upright picture that a reader with orientation support reverses.
ORIENTATIONS = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
RUSSIAN = ["Корабль прибыл в порт утром", "Груз отправлен на большой склад"]
GERMAN = ["Das Schiff läuft früh aus", "Größe und Öffnung prüfen"]
# Scripts not covered by the built-in models.
UNKNOWN = {
    "Russian": RUSSIAN,
    "Greek": ["Το πλοίο έφτασε στο λιμάνι", "νωρίς το πρωί με φορτίο"],
    "Hebrew": ["האונייה הגיעה לנמל בבוקר", "המטען נשלח למחסן הגדול"],
    "Arabic": ["وصلت السفينة إلى الميناء صباحا", "تم إرسال البضائع إلى المستودع"],
    "Armenian": ["Նավը նավահանգիստ հասավ առավոտյան", "Բեռը ուղարկվել է պահեստ"],
}
ROWS = [f"Row {number} of a page to scroll" for number in range(1, 61)]
KEYWORDS = ["lighthouse", "fog"]
SYNTAX, CORE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://purl.org/dc/elements/1.1/"
LISTED = "".join(f"<rdf:li>{word}</rdf:li>" for word in KEYWORDS)
XMP = f"""<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="{SYNTAX}">
<rdf:Description rdf:about="" xmlns:dc="{CORE}">
<dc:subject><rdf:Bag>{LISTED}</rdf:Bag></dc:subject>
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">Quiet water</rdf:li></rdf:Alt></dc:title>
</rdf:Description></rdf:RDF></x:xmpmeta>""".encode()


def label(word: str) -> list[str]:
    return [f"Crate {word} from the quay", "to be kept dry and cool"]


def labelled(word: str) -> Image.Image:
    return drawn(label(word), SIZE, 36)


def turned(path: Path, orientation: int, word: str) -> None:
    image, way = labelled(word), ORIENTATIONS[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    (image if way is None else image.transpose(way)).save(path, exif=exif)


def ycck(image: Image.Image) -> bytes:
    """As Photoshop stores CMYK: turned into YCC and K, and inverted. A marker by Adobe tells so."""
    cyan, magenta, yellow, black = image.convert("CMYK").split()
    inverted = [ImageOps.invert(band) for band in (cyan, magenta, yellow)]
    bands = [*Image.merge("RGB", inverted).convert("YCbCr").split(), ImageOps.invert(black)]
    # Pillow inverts CMYK data again when it stores it.
    stored = bytearray(saved(Image.merge("CMYK", [ImageOps.invert(band) for band in bands]), "JPEG", quality=92))
    at = stored.index(b"Adobe")
    stored[at + 11] = 2
    return bytes(stored)


def with_transparency(image: Image.Image) -> bytes:
    """White is no dot at all, of a palette in which it would be black."""
    small = image.convert("L").point(lambda dot: 0 if dot > 127 else 1).convert("P")
    small.putpalette([0, 0, 0, 60, 60, 60])
    return saved(small, "PNG", transparency=0)


def interlaced(image: Image.Image) -> bytes:
    """Adam7, which Pillow reads but does not write."""
    gray, (width, height) = image.convert("L"), image.size
    dots, rows = gray.load(), bytearray()
    for left, top, across, down in [
        (0, 0, 8, 8),
        (4, 0, 8, 8),
        (0, 4, 4, 8),
        (2, 0, 4, 4),
        (0, 2, 2, 4),
        (1, 0, 2, 2),
        (0, 1, 1, 2),
    ]:
        for y in range(top, height, down):
            rows += b"\0" + bytes(dots[x, y] for x in range(left, width, across))
    return png(struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 1), bytes(rows))


def png(header: bytes, rows: bytes) -> bytes:
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, content) for kind, content in chunks)


def animated(image: Image.Image) -> bytes:
    other = drawn(["A later picture"], image.size, 36)
    return saved(image, "PNG", save_all=True, append_images=[other], duration=500)


def gray_and_alpha(image: Image.Image) -> bytes:
    """All dots are black, and only how much they cover tells letters from paper."""
    cover = ImageOps.invert(image.convert("L"))
    return saved(Image.merge("LA", [Image.new("L", image.size, 0), cover]), "PNG")


# Storage variant with its file extension.
STORED: dict[str, tuple[str, Callable[[Image.Image], bytes]]] = {
    "progressive": ("jpg", lambda image: saved(image, "JPEG", progressive=True)),
    "gray": ("jpg", lambda image: saved(image.convert("L"), "JPEG")),
    "CMYK": ("jpg", lambda image: saved(image.convert("CMYK"), "JPEG")),
    "YCCK": ("jpg", ycck),
    "with restart markers": ("jpg", lambda image: saved(image, "JPEG", restart_marker_rows=1)),
    "without subsampling": ("jpg", lambda image: saved(image, "JPEG", subsampling=0)),
    "of 1 bit": ("png", lambda image: saved(image.convert("1"), "PNG")),
    "of 16 bits": ("png", lambda image: saved(sixteen_bits(image), "PNG")),
    "with a palette": ("png", lambda image: saved(image.quantize(8), "PNG")),
    "with transparent dots of a palette": ("png", with_transparency),
    "gray and alpha": ("png", gray_and_alpha),
    "interlaced": ("png", interlaced),
    "animated": ("png", animated),
    "white on black": ("png", lambda image: saved(ImageOps.invert(image), "PNG")),
}


def in_script(path: Path, lines: list[str]) -> None:
    """Letters that Pillow's own font lacks."""
    image = Image.new("RGB", (1000, 400), "white")
    font = ImageFont.truetype("DejaVuSans.ttf", 40)
    ImageDraw.Draw(image).multiline_text((60, 60), "\n".join(lines), "black", font, spacing=24)
    image.save(path)


def scrolled(path: Path) -> None:
    """A long page as browsers save it, fifteen times as high as it is wide."""
    image = Image.new("RGB", (720, 10_800), "white")
    font = ImageFont.load_default(size=30)
    for number, row in enumerate(ROWS):
        ImageDraw.Draw(image).text((60, 60 + 178 * number), row, "black", font)
    image.save(path)


def gradient() -> Image.Image:
    bands = [Image.linear_gradient("L").rotate(angle).resize((640, 480)) for angle in (0, 90, 180)]
    return Image.merge("RGB", bands)


def noise() -> Image.Image:
    return Image.frombytes("RGB", (320, 240), random.Random(7).randbytes(320 * 240 * 3))


def about(image: Image.Image, path: Path) -> None:
    """Where, when, by whom and with what it was taken."""
    exif = Image.Exif()
    exif[0x010F], exif[0x0110], exif[0x013B] = "Kranich", "K-100", "Ada Quay"
    exif.get_ifd(0x8769)[0x9003] = "2024:03:01 09:30:00"
    exif.get_ifd(0x8825).update({1: "S", 2: (53.0, 32.0, 45.0), 3: "W", 4: (9.0, 58.0, 30.0)})
    image.save(path, exif=exif, xmp=XMP)


def with_text_chunks(image: Image.Image, path: Path) -> None:
    info = PngInfo()
    info.add_text("Title", "Quiet water")
    info.add_itxt("Author", "Jörg Kai")
    info.add_text("Description", "Seen from the old mole", zip=True)
    info.add_itxt("XML:com.adobe.xmp", XMP.decode())
    image.save(path, pnginfo=info)


def dot() -> Image.Image:
    return Image.new("RGB", (1, 1), "white")


def claims(side: int) -> dict[str, bytes]:
    """Small files whose headers tell of more dots than anyone can hold."""
    jpeg = bytearray(saved(Image.new("L", (16, 16)), "JPEG"))
    at = jpeg.index(b"\xff\xc0")
    jpeg[at + 5 : at + 9] = struct.pack(">HH", side, side)
    return {"huge.jpg": bytes(jpeg), "huge.png": png(struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0), bytes(1000))}
