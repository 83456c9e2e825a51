"""Whether the words that a page shows are those that are read."""

from collections.abc import Iterable
from typing import Any

import documents_scans as scans
from checks import Checks, same
from documents_scans import SHIPS


def said(shown: dict[str, Any]) -> str:
    """The text of a page or block, wherever its lines end."""
    return " ".join(shown["text"].split())


def reads(checks: Checks, what: str, page: dict[str, Any], lines: Iterable[str]) -> None:
    same(checks, what, said(page), " ".join(lines))


def reads_ships(checks: Checks, read: dict[str, Any], ways: Iterable[str]) -> None:
    """Each page shows its ship, and how it was made has a name."""
    ways = list(ways)
    same(checks, "pages in order (K-34)", [page["number"] for page in read["pages"]], list(range(1, len(ways) + 1)))
    for way, page, ship in zip(ways, read["pages"], SHIPS, strict=False):
        reads(checks, f"{way} (K-33)", page, scans.lines(ship))
