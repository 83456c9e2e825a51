"""Minimum activity of a run: a run with too few operations proves nothing and fails."""

import faults
from invariant_violation import InvariantViolation
from report import Report

# Minimum counts while faults are injected: a fraction of the usual counts in half a minute.
MIN_COUNTS = {
    "adds acknowledged": 25,
    "cancels acknowledged": 5,
    "removals acknowledged": 5,
    "passages found": 10,
    "dead versions not found": 2,
    "documents read": 5,
    "texts classified": 2,
    "taxonomies saved": 5,
    "chat completions": 10,
    "model lists": 1,
    "embeddings": 1,
    "connections terminated": 5,
    "protocol modern": 50,
    "protocol legacy": 10,
    "protocol session": 10,
    "protocol rest": 10,
}
# Minimum counts of comparisons after the faults.
MIN_COMPARISONS = {"documents compared": 10, "searches compared": 10}


def shortfalls(report: Report, minimums: dict[str, int] = MIN_COUNTS) -> list[str]:
    """The counts below their minimum."""
    return [
        f"{what}: {report.counts[what]}, minimum {count}"
        for what, count in minimums.items() if report.counts[what] < count
    ]


def check(report: Report) -> None:
    missing = shortfalls(report, MIN_COUNTS | MIN_COMPARISONS)
    missing += [f"no fault of kind `{kind}`" for kind in faults.FAULT_WEIGHTS if report.faults[kind] == 0]
    if missing:
        raise InvariantViolation(f"too little activity: {'; '.join(missing)}")
