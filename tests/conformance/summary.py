"""Counts the checks the conformance suite has written down, and tells those that did not succeed.

summary.py --scenarios N DIRECTORY   one set: a line per failure and warning, then one line each for the core and for
                                     the tasks extension; fails when a check failed or fewer than N scenarios ran
summary.py --total DIRECTORY         all sets together, as `N passed, N failed`
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path


def scenarios(directory: Path) -> Iterator[tuple[str, list[dict]]]:
    """The suite writes server-SCENARIO-2026-01-31T12-00-00-000Z/checks.json."""
    for file in sorted(directory.glob("*/checks.json")):
        name = re.sub(r"^server-|-[0-9]{4}-[0-9T-]+Z$", "", file.parent.name)
        yield name, json.loads(file.read_text(encoding="utf-8"))


def tell_set(directory: Path, expected: int) -> bool:
    counts = {"core": Counter(), "tasks extension": Counter()}
    ran = 0
    for scenario, checks in scenarios(directory):
        ran += 1
        part = "tasks extension" if scenario.startswith("tasks-") else "core"
        for check in checks:
            counts[part][check["status"]] += 1
            if check["status"] in ("FAILURE", "WARNING"):
                print(f"{check['status']:7}  {scenario}: {check['id']}: {check.get('errorMessage', check['description'])}")
    for part, count in counts.items():
        if count:
            word = "FAIL" if count["FAILURE"] else "ok"
            print(
                f"{word:4}  conformance {directory.name} {part}: {count['SUCCESS']} passed, {count['FAILURE']} failed,"
                f" {count['WARNING']} warnings, {count['SKIPPED']} skipped"
            )
    if ran < expected:
        print(f"FAIL  conformance {directory.name}: {ran} of {expected} scenarios ran; see {directory.name}.log")
    return ran >= expected and not any(count["FAILURE"] for count in counts.values())


def tell_total(directory: Path) -> None:
    count = Counter(
        check["status"] for one in sorted(directory.iterdir()) if one.is_dir() for _, checks in scenarios(one) for check in checks
    )
    print(f"{count['SUCCESS']} passed, {count['FAILURE']} failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=0)
    parser.add_argument("--total", action="store_true")
    parser.add_argument("directory", type=Path)
    given = parser.parse_args()
    if given.total:
        tell_total(given.directory)
    elif not tell_set(given.directory, given.scenarios):
        sys.exit(1)


if __name__ == "__main__":
    main()
