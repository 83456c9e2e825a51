"""How close the shipped model is to the original, over texts of your own.

Takes files of texts, one a line; of lines that are JSON objects the member `text` or `question` is taken. Embeds them
with the program itself (`corbie embed`) and with the original in float64, and prints the cosines.

    python compare.py --cache DIR --corbie ../../target/release/corbie --most 600 FILE...
"""

import argparse
import json
import random
import subprocess
from pathlib import Path

import numpy

import bert
import minilm
import source


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--cache", type=Path, required=True, help="where the source package is kept")
    arguments.add_argument("--corbie", type=Path, required=True, help="the program to compare")
    arguments.add_argument("--most", type=int, default=600, help="so many texts, drawn at random with a fixed seed")
    arguments.add_argument("files", type=Path, nargs="+")
    arguments = arguments.parse_args()

    texts = sorted({text for file in arguments.files for text in read(file)})
    random.Random(7).shuffle(texts)
    texts = texts[: arguments.most]
    original = source.fetch(arguments.cache)
    tokenizer = minilm.tokenizer(original)
    run = subprocess.run(
        [arguments.corbie, "--log-level", "error", "embed", "--json"],
        input="\n".join(texts), capture_output=True, text=True, check=True,
    )
    cosines = []
    for text, line in zip(texts, run.stdout.splitlines(), strict=True):
        expected = bert.embed(original.weights, tokenizer.encode(text).ids)
        cosines.append(float(numpy.dot(json.loads(line)["vector"], expected)))
    cosines.sort()
    print(f"{len(cosines)} texts: mean {numpy.mean(cosines):.4f}, min {cosines[0]:.4f}, median {numpy.median(cosines):.4f}")


def read(file: Path):
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("{"):
            record = json.loads(line)
            line = record.get("text") or record.get("question") or ""
        if line := " ".join(line.split()):
            yield line


if __name__ == "__main__":
    main()
