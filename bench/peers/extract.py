"""The peers of `bench/run extract`: text out of documents.

    extract.py NAME     kreuzberg, markitdown, pypdfium2 or trafilatura

Each line of stdin asks for a file, `{"path", "full", "times"}`; each line of stdout tells `{"text", "pages", "cpu_s"}`, or
`{"error"}` with the kind of the exception. A file is read up to `times` times, and the fastest counts. Nobody does OCR,
and nobody keeps what was read before.
"""

import json
import os
import resource
import sys

# What a library prints must not come between the answers.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

# A file that took longer is not read again.
LONG = 1.0


def kreuzberg():
    from kreuzberg import ExtractionConfig, extract_file_sync

    # Its quality processing changes no score here, and takes time.
    config = ExtractionConfig(use_cache=False, disable_ocr=True, enable_quality_processing=False)

    return lambda path, full: (extract_file_sync(path, config=config).content, None)


def markitdown():
    from markitdown import MarkItDown

    converter = MarkItDown(enable_plugins=False)
    return lambda path, full: (converter.convert(path).text_content, None)


def pypdfium2():
    import pypdfium2

    def read(path, full):
        document = pypdfium2.PdfDocument(path)
        try:
            texts = []
            for page in document:
                text_page = page.get_textpage()
                texts.append(text_page.get_text_bounded())
                text_page.close()
                page.close()
            return "\n".join(texts), len(texts)
        finally:
            document.close()

    return read


def trafilatura():
    from trafilatura import extract, html2txt

    def read(path, full):
        with open(path, "rb") as file:
            page = file.read()
        return (html2txt(page) if full else extract(page)) or "", None

    return read


def main():
    peers = {"kreuzberg": kreuzberg, "markitdown": markitdown, "pypdfium2": pypdfium2, "trafilatura": trafilatura}
    read = peers[sys.argv[1]]()
    tell({"ready": True})
    for line in sys.stdin:
        order = json.loads(line)
        try:
            tell(measure(read, order))
        except Exception as error:
            tell({"error": type(error).__name__})


def measure(read, order):
    fastest = None
    for _ in range(order["times"]):
        started = cpu_seconds()
        text, pages = read(order["path"], order["full"])
        took = cpu_seconds() - started
        fastest = took if fastest is None else min(fastest, took)
        if took > LONG:
            break
    return {"text": text, "pages": pages, "cpu_s": fastest}


def cpu_seconds():
    # Not the clock of the process: under a limit of CPU time Linux moves that only now and then, and a file of a
    # millisecond takes nothing.
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def tell(answer):
    # Text out of broken fonts may hold halves of characters.
    answers.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n")
    answers.flush()


main()
