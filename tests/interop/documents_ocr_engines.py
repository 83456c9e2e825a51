"""Who reads pictures and when: flags, scripts, Tesseract, and processes that are watched and ended."""

import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import documents_photos as photos
import documents_scans as scans
from checks import Checks, same
from documents_process import Corbie, blocks
from documents_scans import SHIPS
from documents_assertions import reads, reads_ships, said

MEGABYTES_PER_WORKER = 300
# For a terminated program and its child processes.
SECONDS_TO_END = 2
NOT_FOUND = "OCR processing failed: Tesseract not found"
TESSERACT = {"CORBIE_OCR__ENGINE": "tesseract"}


def flags(checks: Checks, corbie: Corbie) -> None:
    scan, picture = corbie.folder / "scan.pdf", corbie.folder / "picture.png"
    scans.scans(scan, SHIPS[:1])
    photos.labelled("Osprey").save(picture)
    for flag in [[], ["--ocr"], ["--ocr=auto"], ["--ocr=force"]]:
        ended = corbie.run(*flag, scan, picture)
        words = [" ".join(scans.lines(SHIPS[0])), " ".join(photos.label("Osprey"))]
        text = " ".join(ended.out.split())
        checks.that(
            ended.code == 0 and all(each in text for each in words), f"{flag or 'no flag'}: both are read", text
        )
    for off, environment in {"--ocr=off": {}, "--ocr=auto": {"CORBIE_OCR__ENGINE": "off"}}.items():
        ended = corbie.run(scan, "--json", off, **environment)
        found = (ended.code, ended.line()["error"], [page.get("scanned") for page in ended.line()["pages"]])
        same(checks, f"{off} {environment}: a scan has no text (K-31)", found, (1, "no_text_extracted", [True]))
        read = corbie.opened(picture, off, **environment)
        checks.that(
            "Osprey" not in str(read) and "picture.png" in said(read["pages"][0]),
            f"{off} {environment}: a picture is known by its name",
            str(read),
        )
    same(checks, "another word is a mistake in the command", corbie.run(scan, "--ocr=never").code, 2)
    page = corbie.read(scan)["pages"][0]
    same(checks, "members of a page", sorted(page), ["blocks", "confidence", "number", "scanned", "text"])


def stdin(checks: Checks, corbie: Corbie) -> None:
    for name, words in {"scan.pdf": scans.lines(SHIPS[0]), "picture.png": photos.label("Osprey")}.items():
        ended = corbie.run("-", stdin=corbie.folder / name)
        same(checks, f"{name}: its words", (ended.code, " ".join(ended.out.split())), (0, " ".join(words)))
    read = corbie.run("-", "--json", stdin=corbie.folder / "wild gulls.png").line()
    checks.that("320 by 240" in said(read["pages"][0]), "a picture without words or name", str(read))


def scripts(checks: Checks, corbie: Corbie) -> None:
    folder = corbie.folder
    photos.in_script(folder / "german.png", photos.GERMAN)
    reads(checks, "German letters", corbie.opened(folder / "german.png")["pages"][0], photos.GERMAN)
    for script, lines in photos.UNKNOWN.items():
        photos.in_script(path := folder / f"{script.lower()}.png", lines)
        read = corbie.opened(path)
        same(checks, f"{script} is no nonsense", [block["kind"] for block in blocks(read)], ["caption"])
        warns(checks, f"{script}: a warning names who can read it", read)
    photos.in_script(path := folder / "both.png", [*photos.label("Heron"), *photos.RUSSIAN])
    read = corbie.opened(path)
    reads(checks, "of two scripts the one that is known", read["pages"][0], photos.label("Heron"))
    warns(checks, "of two scripts: a warning about the other", read)
    scans.bound(
        folder / "mixed.pdf",
        [scans.saved(scans.drawn(scans.lines("Heron")), "PNG"), (folder / "russian.png").read_bytes()],
    )
    read = corbie.read(folder / "mixed.pdf")
    reads(checks, "a page beside it is read", read["pages"][0], scans.lines("Heron"))
    same(checks, "the page of Russian is empty", said(read["pages"][1]), "")
    same(checks, "its warning names it", [warning.get("page") for warning in read["warnings"]], [2])


def warns(checks: Checks, what: str, read: dict[str, Any]) -> None:
    told = [warning["message"] for warning in read["warnings"]]
    checks.that(len(told) == 1 and "tesseract" in told[0], what, f"got {told}")


def tesseract(checks: Checks, corbie: Corbie) -> None:
    """Fails where Tesseract is missing: `install` says what to do."""
    folder = corbie.folder
    if shutil.which("tesseract") is None:
        checks.that(
            False, "Tesseract is here", "it is MISSING, and nothing below was asked; see tests/interop/install"
        )
        return
    listed = subprocess.run(["tesseract", "--list-langs"], capture_output=True, encoding="utf-8", check=True).stdout
    checks.that(
        {"eng", "deu", "rus"} <= {*listed.split()}, "Tesseract is here, with English, German and Russian", listed
    )
    for name, language, words in [("german.png", "deu", photos.GERMAN), ("russian.png", "rus", photos.RUSSIAN)]:
        asked = ["tesseract", str(folder / name), "stdout", "-l", language]
        own = subprocess.run(asked, capture_output=True, encoding="utf-8", check=True).stdout
        same(checks, f"{name}: what Tesseract sees", " ".join(own.split()), " ".join(words))
        read = corbie.opened(folder / name, **TESSERACT, CORBIE_OCR__LANGUAGE=language)
        reads(checks, f"{name}: corbie hands it on", read["pages"][0], words)
    read = corbie.opened(folder / "hybrid.pdf", **TESSERACT)
    reads(checks, "a typed page is as typed", read["pages"][0], scans.TYPED)
    reads(checks, "a scan is read", read["pages"][1], scans.lines(SHIPS[0]))
    same(checks, "the method (K-32)", read["processing_method"], "hybrid")
    scans.turned(folder / "turned.pdf", [90, 180, 270], upright=True)
    reads_ships(
        checks, corbie.opened(folder / "turned.pdf", **TESSERACT), [f"turned by {angle}" for angle in [90, 180, 270]]
    )
    for name, words in {"figure.pdf": scans.FIGURE, "album.docx": photos.label("Albatross")}.items():
        found = blocks(corbie.opened(folder / name, **TESSERACT), "image")
        reads(checks, f"{name}: words in a picture (K-35)", found[0], words)
    both = corbie.opened(folder / "german.png", **TESSERACT, CORBIE_OCR__LANGUAGE="deu+eng")
    reads(checks, "two languages", both["pages"][0], photos.GERMAN)
    # The language folder reported by Tesseract.
    languages = Path(listed.partition('"')[2].partition('"')[0])
    shutil.copy(languages / "deu.traineddata", folder / "mine.traineddata")
    mine = TESSERACT | {"CORBIE_OCR__LANGUAGE": "mine", "TESSDATA_PREFIX": str(folder)}
    read = corbie.read(folder / "german.png", **mine)
    reads(checks, "a language where TESSDATA_PREFIX says", read["pages"][0], photos.GERMAN)


def without_tesseract(checks: Checks, corbie: Corbie) -> None:
    nowhere = TESSERACT | {"PATH": "/nowhere"}
    for name in ["scan.pdf", "picture.png", "hybrid.pdf", "album.docx"]:
        ended = corbie.run(corbie.folder / name, "--json", **nowhere)
        line = ended.line()
        found = (ended.code, line["error"], line["message"])
        same(checks, f"{name} without the program (K-31)", found, (1, "ocr_failed", NOT_FOUND))
    read = corbie.read(corbie.folder / "hybrid.pdf", **nowhere)
    same(
        checks,
        "typed pages are kept (K-37)",
        (read.get("partial"), said(read["pages"][2])),
        (True, " ".join(scans.TYPED)),
    )
    ended = corbie.run(corbie.folder / "scan.pdf", **nowhere)
    checks.that(NOT_FOUND in ended.err, "told on stderr too (K-31)", ended.err)
    typed = corbie.folder / "logo.pdf"
    same(checks, "nobody misses it where nothing is to be seen", corbie.run(typed, "--ocr=off", **nowhere).code, 0)
    read = corbie.read(corbie.folder / "scan.pdf", **TESSERACT, CORBIE_OCR__LANGUAGE="xyz")
    told = read["error"] == "ocr_failed" and "Failed loading language 'xyz'" in read["message"]
    checks.that(told, "a language that is not there, in Tesseract's words (K-31)", str(read)[:300])
    ended = corbie.run(corbie.folder / "scan.pdf", **TESSERACT, CORBIE_OCR__LANGUAGE="--help")
    checks.that(ended.code != 0 and "ocr.language" in ended.err, "a flag is no language", ended.err)


def interrupted(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "long.pdf"
    scans.scans(path, (SHIPS * 3)[:30])
    ends(checks, corbie, path, signal.SIGINT)


def killed(checks: Checks, corbie: Corbie) -> None:
    ends(checks, corbie, corbie.folder / "long.pdf", signal.SIGKILL)


def ends(checks: Checks, corbie: Corbie, path: Path, by: signal.Signals) -> None:
    for who, processes, environment in [("its worker", 2, {}), ("Tesseract", 3, TESSERACT)]:
        ended = corbie.end_while_reading(path, by, processes, busy=0.5, **environment)
        checks.that(ended.code != 0, f"{who} at work: it ends with an error", f"exit code {ended.code}")
        checks.that(not ended.left, f"{who} ends with it (S-12)", str(ended.left))
        checks.that(ended.seconds < SECONDS_TO_END, f"{who} ends at once", f"after {ended.seconds:.1f} s")


def workers(checks: Checks, corbie: Corbie) -> None:
    path = corbie.folder / "ordinary.pdf"
    scans.scans(path, SHIPS[:6])
    seen = corbie.watch(path)
    same(checks, "one worker reads one file", len(seen), 1)
    peak = max(worker.peak_megabytes for worker in seen)
    checks.that(
        0 < peak < MEGABYTES_PER_WORKER, f"less than {MEGABYTES_PER_WORKER} MB for a scan of 6 pages", f"{peak:.0f} MB"
    )
    same(checks, "no file or socket is open (S-12)", [sorted(worker.opened) for worker in seen], [[]])
    same(checks, "every thread is confined (S-12)", [sorted(worker.unconfined) for worker in seen], [[]])
