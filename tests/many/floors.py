"""What has to have happened: a run in which hardly anything was done shows nothing, however right it was."""

import faults
from broken import Broken
from report import Report

# Minimum amounts while faults are injected: a fraction of the usual amounts in half a minute.
LEAST = {
    "adds acknowledged": 25,
    "cancels acknowledged": 5,
    "removals acknowledged": 5,
    "passages found": 10,
    "searched in vain": 2,
    "read": 5,
    "classified": 2,
    "taxonomies saved": 5,
    "turns answered": 10,
    "models listed": 1,
    "texts embedded": 1,
    "connections cut": 5,
    "face modern": 50,
    "face legacy": 10,
    "face session": 10,
    "face rest": 10,
}
# Minimum amounts to compare afterwards.
COMPARED = {"documents compared": 10, "searches compared": 10}


def missed(report: Report, least: dict[str, int] = LEAST) -> list[str]:
    """What was done too little."""
    return [
        f"{what}: {report.counts[what]}, and {count} is the least"
        for what, count in least.items() if report.counts[what] < count
    ]


def check(report: Report) -> None:
    too_little = missed(report, LEAST | COMPARED)
    too_little += [f"no fault of the kind `{kind}` has struck" for kind in faults.KINDS if report.faults[kind] == 0]
    if too_little:
        raise Broken(f"too little was done to show anything: {'; '.join(too_little)}")
