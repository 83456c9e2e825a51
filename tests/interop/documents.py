"""`corbie extract` reads documents that others wrote: the libraries most programs use, and some who mean harm."""

import argparse
import shutil
import tempfile
import traceback
from pathlib import Path
from typing import Any

import documents_adversarial as hostile
import documents_office as office
import documents_pages as pages
from checks import Checks, same
from documents_process import Corbie, blocks, texts

SECONDS_PER_BOMB = 20
MEGABYTE = 1 << 20
# All allowed outcomes of reading a hostile file.
ENDS = {"corrupted_file", "limit_exceeded", "memory_limit", "cpu_limit", "time_limit", "no_text_extracted"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="path of corbie")
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        corbie = Corbie(parser.parse_args().program, Path(folder))
        for part in [word, slides, openpyxl_workbook, xlsxwriter_workbook, pdf, other_pdfs, web_pages, pictures, plain]:
            converse(checks, corbie, part)
        for part in [names, broken, bombs, killed, left_behind]:
            converse(checks, corbie, part)
    checks.exit()


def converse(checks: Checks, corbie: Corbie, part: Any) -> None:
    checks.prefix = f"documents {part.__name__.replace('_', ' ')}"
    try:
        part(checks, corbie)
    except Exception:
        checks.that(False, "ends without an exception", traceback.format_exc())


def word(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "report.docx"
    office.word(path)
    read = corbie.opened(path)
    about = {"title": "Harbour report", "author": "Ada Quay", "subject": "Ships", "created": "2024-03-01T09:30:00Z"}
    same(checks, "properties", about.items() & read["metadata"].items(), about.items())
    same(checks, "the method (K-32)", read["processing_method"], "text_extraction")
    headings = [(block["level"], block["text"]) for block in blocks(read, "heading")]
    same(checks, "headings", headings, [(1, "Harbour"), (2, "Piers"), (3, "Figures")])
    paragraphs = ["Ships arrive daily.", "Twelve piers are in use.", "See the tide table"]
    same(checks, "runs and links are one text", texts(read, "paragraph"), paragraphs)
    items = [(block["depth"], block["text"]) for block in blocks(read, "list_item")]
    same(checks, "a list in a list", items, [(0, "North pier"), (1, "Its crane"), (1, "Its bell"), (0, "South pier")])
    (table,) = blocks(read, "table")
    rows = [["Pier", "Ships", ""], ["North", "in", "12"], ["", "out", "9"]]
    same(checks, "merged cells keep their places (K-35)", table["rows"], rows)
    same(checks, "headings above a block", table["path"], ["Harbour", "Piers", "Figures"])
    same(checks, "header and footer", texts(read, "furniture"), ["Harbour office", "Not for the public"])
    paths = [block.get("path", []) for block in blocks(read, "furniture")]
    same(checks, "header and footer are under no heading", paths, [[], []])
    same(checks, "footnote", texts(read, "note"), ["Counted at high tide."])
    (note,) = blocks(read, "note")
    found = note.get("path", [])
    checks.that(found in [[], ["Harbour"]], "a footnote is under its own heading, or none", f"under {found}")
    same(checks, "comment", texts(read, "comment"), ["Every day?"])
    (image,) = read["pages"][0]["images"]
    same(checks, "a picture and its words (K-35)", (image["width"], image["description"]), (60, "A ship at the pier"))
    markdown = corbie.run(path, "--markdown").out
    for line in ["# Harbour", "## Piers", "### Figures", "- North pier", "  - Its bell", "| North | in | 12 |"]:
        checks.that(line in markdown.splitlines(), f"`{line}` in Markdown", markdown)
    checks.that("Harbour office" not in markdown, "no header in Markdown", markdown)


def slides(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "talk.pptx"
    office.slides(path)
    read = corbie.opened(path)
    same(checks, "title", read["metadata"].get("title"), "Harbour talk")
    numbered = [(page["number"], page["name"]) for page in read["pages"]]
    same(checks, "pages are slides, by number and title (K-34)", numbered, [(1, "Ships in port"), (2, "Cargo by pier")])
    items = [(block["depth"], block["text"]) for block in blocks(read, "list_item")]
    same(checks, "bullets", items, [(0, "Freighters"), (1, "Bulk"), (0, "Ferries")])
    same(checks, "speaker notes", texts(read, "note"), ["Mention the new ferry."])
    tables = [block["rows"] for block in blocks(read, "table")]
    checks.that([["Pier", "Tons"], ["North", "1200"]] in tables, "a table (K-35)", str(tables))
    same(checks, "shapes in a group", texts(read, "paragraph"), ["Crane A", "Crane B"])
    same(checks, "a picture (K-35)", [image["description"] for image in read["pages"][1]["images"]], ["A crane"])
    markdown = corbie.run(path, "--markdown").out
    checks.that("<!-- page 2: Cargo by pier -->" in markdown, "pages in Markdown", markdown)


def openpyxl_workbook(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "figures.xlsx"
    office.openpyxl_workbook(path)
    read = corbie.opened(path)
    same(checks, "title", read["metadata"].get("title"), "Harbour figures")
    numbered = [(page["number"], page["name"]) for page in read["pages"]]
    same(checks, "pages are sheets, hidden ones too (K-34)", numbered, [(1, "Figures"), (2, "Merged"), (3, "Secret")])
    as_shown(checks, read, {"Broken": "#DIV/0!", "Sum": "=SUM(B5,B6)"})
    same(checks, "comment", texts(read, "comment"), ["A2: Is this exact?"])
    merged = blocks(read, "table")[1]["rows"]
    rows = [["Pier", "Ships"], ["North", "in", "12"], ["", "out", "9"]]
    same(checks, "merged cells keep their places (K-35)", [trimmed(row) for row in merged], rows)
    markdown = corbie.run(path, "--markdown").out
    checks.that("| Day | 2024-03-01 |" in markdown, "a table in Markdown", markdown)


def xlsxwriter_workbook(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "sums.xlsx"
    office.xlsxwriter_workbook(path)
    read = corbie.opened(path)
    same(checks, "created", read["metadata"].get("created"), "2024-03-01T09:30:00Z")
    same(checks, "sheets (K-34)", [page["name"] for page in read["pages"]], ["Sums", "Empty", "Last"])
    as_shown(checks, read, {"Sum": "3", "Word": "ab", "Bad": "#DIV/0!"})
    checks.that("Rich text cell" in read["pages"][0]["text"], "a text in several fonts", read["pages"][0]["text"])
    same(checks, "comment", texts(read, "comment"), [f"A{len(office.SHOWN) + 5}: Look here"])
    others = [page["text"] for page in read["pages"][1:]]
    same(checks, "an empty sheet, and a cell far from the first", others, ["Empty", "Last\n\nfar away"])


def as_shown(checks: Checks, read: dict[str, Any], more: dict[str, str]) -> None:
    """The first table says of every value what a reader of the sheet sees."""
    table = blocks(read, "table")[0]
    found = {row[0]: row[1] for row in table["rows"] if len(row) > 1}
    same(checks, "a row of titles", (table["header_rows"], found.get("What")), (1, "Value"))
    for what, wanted in ({what: shown for what, _, _, shown in office.SHOWN} | more).items():
        same(checks, f"the cell `{what}` is as shown", found.get(what), wanted)


def trimmed(row: list[str]) -> list[str]:
    return "\t".join(row).rstrip("\t").split("\t")


def pdf(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "report.pdf"
    pages.report(path)
    read = corbie.opened(path)
    about = {"title": "Port report", "author": "Ada Quay", "subject": "Ships", "language": "en-GB"}
    same(checks, "properties", about.items() & read["metadata"].items(), about.items())
    same(checks, "pages (K-34)", [page["number"] for page in read["pages"]], [1, 2])
    upright = [text for text in texts(read, "paragraph") if text != pages.UPWARDS]
    text = " ".join(upright)
    places = [text.find(sentence[:12]) for sentence in pages.SENTENCES]
    checks.that(-1 not in places and places == sorted(places), "two columns, one after the other", str(places))
    cut = [sentence for sentence in pages.SENTENCES if sentence not in text]
    checks.that(not cut, "words of a line are parted as on the page", str(cut))
    columns = [[block["text"] for block in page["blocks"] if block["kind"] == "paragraph"] for page in read["pages"]]
    split = [text for paragraphs in columns for text in paragraphs[1:] if text[0].islower()]
    checks.that(not split, "a sentence goes on in the next column", str(split))
    headings = [(block["level"], block["text"]) for block in blocks(read, "heading")]
    same(checks, "headings", headings, [(1, "Arrivals"), (2, "By night"), (1, "Departures")])
    (table,) = blocks(read, "table")
    same(checks, "a ruled table (K-35)", table["rows"], pages.RULED)
    furniture = ["Harbour office", "Page 1", "Harbour office", "Page 2"]
    same(checks, "headers and footers", texts(read, "furniture"), furniture)
    paths = [block.get("path", []) for block in blocks(read, "furniture")]
    checks.that(not any(paths), "headers and footers are under no heading", str(paths))
    checks.that(pages.UPWARDS in texts(read, "paragraph"), "text that runs upwards", text[-300:])
    same(checks, "a form's field", texts(read, "field"), ["Harbourmaster: Ms Tide"])
    same(checks, "a note", texts(read, "comment"), ["Ask about the fog"])


def other_pdfs(checks: Checks, corbie: Corbie) -> None:
    report, path = corbie.folder / "report.pdf", corbie.folder / "other.pdf"
    plain = corbie.run(report).out
    for algorithm in ["RC4-128", "AES-128", "AES-256"]:
        pages.encrypted(report, path, "user", algorithm)
        refused(checks, corbie, path, "password_protected", f"{algorithm} with a password (K-31, V-14)")
        pages.encrypted(report, path, "", algorithm)
        same(checks, f"{algorithm} that opens without a password (V-14)", corbie.run(path).out, plain)
    pages.scripts(path)
    text = corbie.run(path).out
    for wanted in [pages.GERMAN, pages.JAPANESE]:
        checks.that(wanted in text, f"letters of a font: {wanted}", text)
    pages.scan(path)
    read = corbie.read(path)
    same(checks, "a scanned page is told apart (V-14)", [page.get("scanned") for page in read["pages"]], [True])
    same(checks, "what a scan says about itself", read["metadata"].get("title"), "A scan")
    checks.that(read.get("error") in [None, "no_text_extracted"], "a scan is no broken file (K-31)", str(read))


def web_pages(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "page.html"
    # Most pages also have their heading as the title.
    for encoding, title in [("latin-1", "Neues über die Stadt"), ("utf-8-sig", "Der Hafen wird größer")]:
        pages.page(path, encoding, title)
        read = corbie.opened(path)
        about = (read["metadata"].get("title"), read["metadata"].get("language"))
        same(checks, f"{encoding}: title and language", about, (title, "de"))
        headings = [(block["level"], block["text"]) for block in blocks(read, "heading")]
        same(checks, f"{encoding}: headings (K-35)", headings, [(1, "Der Hafen wird größer"), (2, "Zahlen")])
        (table,) = blocks(read, "table")
        same(checks, f"{encoding}: a table (K-35)", table["rows"], [["Pier", "Schiffe"], ["Nord", "12"]])
        days = [f"{pages.PARAGRAPH} Das war Tag {day}." for day in range(1, 6)]
        same(checks, f"{encoding}: the main part alone", texts(read, "paragraph"), days)
    full = corbie.run(path, "--full").out
    for wanted in ["Startseite", "Kontakt", "Der Hafen wird größer", days[4], "Impressum und Datenschutz"]:
        checks.that(wanted in full, f"--full has `{wanted[-25:]}`", full)
    checks.that("color: red" not in full and "script" not in full, "never scripts and styles (K-35)", full)


def pictures(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "map.svg"
    pages.svg(path)
    read = corbie.opened(path)
    words = ["Map of the port", "Piers and cranes", "North pier", "South pier"]
    same(checks, "SVG: its words", [block["text"] for block in blocks(read)], words)
    same(checks, "SVG: the method (K-32)", read["processing_method"], "image_analysis")
    path = corbie.folder / "photograph.jpg"
    pages.photograph(path)
    read = corbie.read(path)
    size = (read["metadata"].get("width"), read["metadata"].get("height"))
    same(checks, "JPG: its size the right way up", size, (480, 640))
    same(checks, "JPG: when it was taken", read["metadata"].get("created"), "2024-03-01T09:30:00")
    same(checks, "JPG: the method (K-32)", read["processing_method"], "image_analysis")
    path = corbie.folder / "drawing.png"
    pages.drawing(path)
    read = corbie.read(path)
    same(checks, "PNG: its size", (read["metadata"].get("width"), read["metadata"].get("height")), (320, 200))
    same(checks, "PNG: the method (K-32)", read["processing_method"], "image_analysis")


def plain(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "letter.txt"
    path.write_text("Grüße vom Kai\r\n\r\nzu 30 €", encoding="utf-16")
    same(checks, "TXT in UTF-16 (K-42)", texts(corbie.opened(path), "paragraph"), ["Grüße vom Kai", "zu 30 €"])
    path = corbie.folder / "list.csv"
    path.write_text('Pier;Länge\nNord;1,5\n"Süd; alt";2\n', encoding="cp1252")
    (table,) = blocks(corbie.opened(path))
    rows = [["Pier", "Länge"], ["Nord", "1,5"], ["Süd; alt", "2"]]
    same(checks, "CSV with semicolons, in an older encoding (K-42)", table["rows"], rows)
    path = corbie.folder / "notes.md"
    path.write_text("# Harbour\n\nShips *arrive*.\n\n- North\n  - Crane\n", encoding="utf-8")
    read = corbie.opened(path)
    found = [(block["kind"], block["text"], block.get("path", [])) for block in blocks(read)]
    wanted = [("paragraph", "Ships arrive."), ("list_item", "North"), ("list_item", "Crane")]
    wanted = [("heading", "Harbour", []), *((kind, text, ["Harbour"]) for kind, text in wanted)]
    same(checks, "MD (K-42)", found, wanted)


def names(checks: Checks, corbie: Corbie) -> None:
    """What a file is called, and whether it is there."""
    folder = corbie.folder
    for source, name in [("report.pdf", "A.PDF"), ("page.html", "a.htm"), ("photograph.jpg", "a.JPEG")]:
        shutil.copy(folder / source, folder / name)
        found = [corbie.read(folder / each).get("format") for each in [source, name]]
        same(checks, f"{name} is read as {source} is (K-24)", found[1], found[0])
    told = "Unsupported file format: .xyz. Use PDF, DOCX, PPTX, XLSX, HTML, JPG, PNG, or SVG"
    (folder / "there.xyz").write_text("text", encoding="utf-8")
    refused(checks, corbie, folder / "there.xyz", "unsupported_format", "another format (K-27)", told)
    refused(checks, corbie, folder / "missing.xyz", "unsupported_format", "another format comes first (K-29)", told)
    refused(checks, corbie, folder / "missing.pdf", "file_not_found", "no file (K-31)")
    shutil.copy(folder / "report.docx", folder / "document.pdf")
    read = corbie.opened(folder / "document.pdf")
    same(checks, "a DOCX called .pdf is read as what it is (K-44)", read["format"], "docx")
    same(checks, "with a warning (K-44)", len(read["warnings"]), 1)
    both = corbie.run(folder / "missing.pdf", folder / "notes.md", folder / "list.csv")
    same(checks, "others are read where one cannot be", (both.code, "Süd; alt" in both.out), (1, True))
    checks.that("missing.pdf: file not found" in both.err, "the reason is told on stderr", both.err)
    marks = [f"==> {folder / name} <==" for name in ["notes.md", "list.csv"]]
    same(checks, "files are told apart, in order", [line for line in both.out.splitlines() if line in marks], marks)


def broken(checks: Checks, corbie: Corbie) -> None:
    folder = corbie.folder
    (folder / "empty.pdf").touch()
    refused(checks, corbie, folder / "empty.pdf", "empty_file", "an empty file (K-31, V-14)")
    for source in ["report.docx", "talk.pptx", "figures.xlsx"]:
        path = folder / f"cut-{source}"
        hostile.cut(folder / source, path)
        refused(checks, corbie, path, "corrupted_file", f"a truncated {source} (V-14)")
    hostile.cut(folder / "report.pdf", folder / "cut.pdf")
    read = corbie.read(folder / "cut.pdf")
    told = bool(read.get("error") or read.get("partial") or read.get("warnings"))
    checks.that(told, "a truncated PDF says that something is missing", str(read)[:300])
    hostile.archive_of_photos(folder / "photos.pdf")
    refused(checks, corbie, folder / "photos.pdf", "corrupted_file", "an archive called .pdf (K-44)")
    hostile.older_office(folder / "old.docx")
    refused(checks, corbie, folder / "old.docx", "corrupted_file", "Word 97 called .docx (K-44)")
    large = folder / "large.txt"
    with large.open("wb") as file:
        file.truncate(100 * MEGABYTE)
    found = corbie.read(large).get("error")
    checks.that(found not in [None, "file_too_large"], "100 MB are not too large (K-28)", str(found))
    with large.open("ab") as file:
        file.write(b"a")
    told = "File size (101 MB) exceeds maximum allowed size (100 MB)"
    refused(checks, corbie, large, "file_too_large", "a byte more is (K-28)", told)
    large.unlink()


def refused(checks: Checks, corbie: Corbie, path: Path, kind: str, what: str, told: str = "") -> None:
    """The file ends with an error of this kind, in words that begin like this."""
    ended = corbie.run(path, "--json")
    line = ended.line()
    holds = ended.code == 1 and line.get("error") == kind and line.get("message", "").startswith(told)
    checks.that(holds and bool(line["message"]), what, f"exit code {ended.code}, {str(line)[:300]}")


def bombs(checks: Checks, corbie: Corbie) -> None:
    folder, document = corbie.folder, corbie.folder / "report.docx"
    secret = folder / "secret.txt"
    secret.write_text("the secret", encoding="utf-8")
    made = {
        "zip.docx": lambda path: hostile.zip_bomb(document, path),
        "entities.docx": lambda path: hostile.entity_bomb(document, path),
        "deep.docx": lambda path: hostile.deep_markup(document, path),
        "entity.svg": lambda path: hostile.file_in_entity(path, secret),
        "far.xlsx": hostile.far_cells,
        "huge.png": hostile.huge_picture,
        "loop.pdf": hostile.looping_pages,
        "forms.pdf": hostile.nested_forms,
    }
    for name, make in made.items():
        make(folder / name)
        ended = corbie.run(folder / name, "--json")
        line = ended.line()
        error = line.get("error")
        typed = error in ENDS if ended.code == 1 else bool(line.get("pages"))
        checks.that(typed, f"{name} ends with an error that has a name, or text (S-12)", ended.out[:300])
        seconds = f"after {ended.seconds:.1f} s"
        checks.that(ended.seconds < SECONDS_PER_BOMB, f"{name} ends in {SECONDS_PER_BOMB} s (S-12)", seconds)
        checks.that(not ended.left, f"{name} leaves no worker (S-12)", str(ended.left))
        checks.that("the secret" not in ended.out and len(ended.out) < MEGABYTE, f"{name} gets nothing out (S-12)")
    found = texts(corbie.opened(folder / "far.xlsx"), "paragraph")
    same(checks, "the first and the last cell of a sheet", found, ["first", "last"])


def killed(checks: Checks, corbie: Corbie) -> None:
    left = corbie.kill_while_reading(corbie.folder / "forms.pdf")
    checks.that(not left, "its worker ends with it (S-12)", str(left))


def left_behind(checks: Checks, corbie: Corbie) -> None:
    found = sorted(path.name for path in corbie.temporary.iterdir())
    same(checks, "no temporary files (K-38)", found, [])


if __name__ == "__main__":
    main()
