"""RapidOCR for `bench/run ocr`.

    ocr.py THREADS upright|turned FILE…     pictures, or PDF files, whose pages PDFium draws

Its classifier of turned lines is used for pages that are `turned` alone: of pages that are not, it turns some lines over.

Each line of stdout tells of one page `{"text", "cpu_s", "wall_s"}`: what loading the networks takes is not in it. The
lines of a page stand in the order in which it gives them.
"""

import json
import os
import resource
import sys
import time

import numpy
import pypdfium2
from PIL import Image

# What a library prints must not come between the answers.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def main():
    from rapidocr import RapidOCR

    threads, turned, files = int(sys.argv[1]), sys.argv[2] == "turned", sys.argv[3:]
    threads = {"EngineConfig.onnxruntime.intra_op_num_threads": threads}
    engine = RapidOCR(params=threads | {"Global.use_cls": turned, "Global.log_level": "critical"})
    for file in files:
        started, busy = time.monotonic(), cpu_seconds()
        for page in pages(file):
            text = "\n".join(engine(page).txts or ())
            now, busy_now = time.monotonic(), cpu_seconds()
            answers.write(json.dumps({"text": text, "cpu_s": busy_now - busy, "wall_s": now - started}) + "\n")
            answers.flush()
            started, busy = now, busy_now


def pages(file):
    if not file.endswith(".pdf"):
        # Not by its name: of a picture with a palette it would take the numbers of the colours for the colours.
        yield numpy.asarray(Image.open(file).convert("RGB"))[:, :, ::-1]
        return
    for page in pypdfium2.PdfDocument(file):
        yield page.render(scale=200 / 72).to_numpy()


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


main()
