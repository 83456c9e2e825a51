"""Texts of the test documents. Every paragraph contains its version, so that a mixture of two versions shows."""

import hashlib

SENTENCES = [
    "A kestrel hovered over the harbour while ships waited for the tide.",
    "The lanterns were lit before the ropes had been coiled.",
    "Nobody on the pier remembered who had written the ledger.",
    "Grain, salt and timber were weighed in the morning.",
    "The pilot came back with the second boat and two crates of oranges.",
    "Fog lay on the water until the bell of the customs house rang.",
]


def unique_word(name: str, version: int) -> str:
    """A word unique to one version of one document, and similar to no other word."""
    digest = hashlib.sha256(f"{name} {version}".encode()).digest()
    return "qz" + "".join(chr(ord("a") + byte % 20) for byte in digest[:16])


def document_text(name: str, version: int, paragraphs: int | None = None) -> str:
    """Several paragraphs; by default their number depends on the version."""
    word = unique_word(name, version)

    def paragraph(number: int) -> str:
        first = SENTENCES[(version + number * 2) % len(SENTENCES)]
        second = SENTENCES[(version + number * 2 + 1) % len(SENTENCES)]
        return f"{word} {number}: {first} {second} That was entry {version}.{number}."

    return "\n\n".join(map(paragraph, range(paragraphs or 1 + version % 4))) + "\n"


def is_of_one_version(passage: str, word: str) -> bool:
    """Whether a passage belongs to a single version."""
    return all(each == word for each in passage.split() if each.startswith("qz"))
