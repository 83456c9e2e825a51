"""What documents say. Every paragraph names its version, so that a mixture of two shows."""

import hashlib

SENTENCES = [
    "A kestrel hovered over the harbour while ships waited for the tide.",
    "The lanterns were lit before the ropes had been coiled.",
    "Nobody on the pier remembered who had written the ledger.",
    "Grain, salt and timber were weighed in the morning.",
    "The pilot came back with the second boat and two crates of oranges.",
    "Fog lay on the water until the bell of the customs house rang.",
]


def word(name: str, version: int) -> str:
    """A word that no other version of any document has, and that is near to none of them."""
    digest = hashlib.sha256(f"{name} {version}".encode()).digest()
    return "qz" + "".join(chr(ord("a") + byte % 20) for byte in digest[:16])


def text(name: str, version: int, paragraphs: int | None = None) -> str:
    """Some paragraphs, more or fewer by the version."""
    mark = word(name, version)

    def paragraph(number: int) -> str:
        first = SENTENCES[(version + number * 2) % len(SENTENCES)]
        second = SENTENCES[(version + number * 2 + 1) % len(SENTENCES)]
        return f"{mark} {number}: {first} {second} That was entry {version}.{number}."

    return "\n\n".join(map(paragraph, range(paragraphs or 1 + version % 4))) + "\n"


def is_of_one_version(found: str, mark: str) -> bool:
    """Whether a passage belongs to one version only."""
    return all(each == mark for each in found.split() if each.startswith("qz"))
