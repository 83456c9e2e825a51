"""Files that are broken, or made to do harm: each is small, and asks for far more than it is."""

import struct
import zipfile
import zlib
from pathlib import Path

import openpyxl

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OPENING = f'<w:document xmlns:w="{WORD}"><w:body>'
CLOSING = "</w:body></w:document>"
MEGABYTE = 1 << 20


def cut(source: Path, path: Path) -> None:
    """The first two thirds of a file."""
    whole = source.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])


def archive_of_photos(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("photos/quay.txt", "no document")


def older_office(path: Path) -> None:
    """The header of a file of Word 97, and its empty sectors."""
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
    path.write_bytes(head.ljust(512, b"\0") + b"\xff" * 4096)


def with_document(source: Path, path: Path, *markup: bytes) -> None:
    """A document of Word with another main part."""
    with zipfile.ZipFile(source) as whole, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name in whole.namelist():
            if name != "word/document.xml":
                made.writestr(name, whole.read(name))
        with made.open("word/document.xml", "w") as part:
            for piece in markup:
                part.write(piece)


def zip_bomb(source: Path, path: Path) -> None:
    """400 megabytes in less than one."""
    paragraph = b"<w:p><w:r><w:t>" + b"a" * MEGABYTE + b"</w:t></w:r></w:p>"
    with_document(source, path, OPENING.encode(), *[paragraph] * 400, CLOSING.encode())


def entity_bomb(source: Path, path: Path) -> None:
    """Ten entities, each ten times the one before: ten gigabytes."""
    entities = ['<!ENTITY a0 "aaaaaaaaaa">']
    entities += [f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)]
    body = "<w:p><w:r><w:t>before &a9; after</w:t></w:r></w:p>"
    markup = f"<?xml version='1.0'?><!DOCTYPE d [{''.join(entities)}]>{OPENING}{body}{CLOSING}"
    with_document(source, path, markup.encode())


def deep_markup(source: Path, path: Path) -> None:
    levels = 100_000
    opening, closing = "<w:sdt><w:sdtContent>" * levels, "</w:sdtContent></w:sdt>" * levels
    markup = f"{OPENING}{opening}<w:p><w:r><w:t>below</w:t></w:r></w:p>{closing}{CLOSING}"
    with_document(source, path, markup.encode())


def file_in_entity(path: Path, secret: Path) -> None:
    """An SVG that asks for what is in another file."""
    doctype = f'<!DOCTYPE svg [<!ENTITY secret SYSTEM "{secret.as_uri()}">]>'
    text = '<svg xmlns="http://www.w3.org/2000/svg"><text>seen</text><text>&secret;</text></svg>'
    path.write_text(f'<?xml version="1.0"?>{doctype}{text}', encoding="utf-8")


def far_cells(path: Path) -> None:
    """Two cells, the first and the last that a sheet can have."""
    book = openpyxl.Workbook()
    book.active["A1"] = "first"
    book.active["XFD1048576"] = "last"
    book.save(path)


def huge_picture(path: Path) -> None:
    """900 million white dots."""
    side = 30_000
    packing = zlib.compressobj(9)
    row = b"\0" + bytes((side + 7) // 8)
    dots = b"".join(packing.compress(row * 1000) for _ in range(side // 1000)) + packing.flush()
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", dots), (b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, content) for kind, content in chunks))


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def looping_pages(path: Path) -> None:
    """A tree of pages that has itself as a branch."""
    tree = "<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 2 >>"
    leaf = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] >>"
    write_pdf(path, ["<< /Type /Catalog /Pages 2 0 R >>", tree, leaf])


def nested_forms(path: Path) -> None:
    """Ten levels, each drawing the next ten times: the innermost text would be drawn ten thousand million times."""
    levels, first = 10, 5
    resources = "<< /Font << /F 4 0 R >> /XObject << /X {} 0 R >> >>"
    page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Resources {resources.format(first)}"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"{page} /Contents {first + levels + 1} 0 R >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    form = "/Type /XObject /Subtype /Form /BBox [0 0 200 200] /Resources "
    for level in range(levels):
        objects.append(stream("/X Do " * 10, form + resources.format(first + level + 1)))
    objects.append(stream("BT /F 12 Tf 20 100 Td (innermost) Tj ET", form + resources.format(first)))
    objects.append(stream("/X Do"))
    write_pdf(path, objects)


def stream(content: str, entries: str = "") -> str:
    return f"<< /Length {len(content)} {entries} >> stream\n{content}\nendstream"


def write_pdf(path: Path, objects: list[str]) -> None:
    body, places = b"%PDF-1.7\n", []
    for number, text in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    count = len(objects) + 1
    trailer = f"trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    path.write_bytes(body + f"xref\n0 {count}\n0000000000 65535 f \n{table}{trailer}".encode())
