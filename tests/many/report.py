"""What happened: a line for each phase as it ends, and figures in the end."""

import time
from collections import Counter


class Report:
    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.counts: Counter = Counter()
        self.faults: Counter = Counter()
        # Seconds, and the limit for the maximum.
        self.times: dict[str, list[float]] = {}
        self.allowed: dict[str, float] = {}

    def phase(self, text: str) -> None:
        print(f"{time.monotonic() - self.begun:7.1f} s  {text}", flush=True)

    def took(self, what: str, seconds: float, allowed: float | None = None) -> None:
        self.times.setdefault(what, []).append(seconds)
        if allowed is not None:
            self.allowed[what] = allowed

    def late(self) -> list[str]:
        """What took longer than it may."""
        return [
            f"{what}: {max(self.times[what]):.2f} s, and {allowed:g} s are allowed"
            for what, allowed in self.allowed.items() if max(self.times[what]) > allowed
        ]

    def table(self) -> str:
        rows = [(name, str(count)) for name, count in sorted(self.counts.items())]
        rows += [(f"fault {name}", str(count)) for name, count in sorted(self.faults.items())]
        for what, seconds in self.times.items():
            seconds = sorted(seconds)
            most = f", at most {self.allowed[what]:g} s allowed" if what in self.allowed else ""
            middle = seconds[len(seconds) // 2]
            rows.append((what, f"{seconds[-1]:.2f} s longest, {middle:.2f} s median of {len(seconds)}{most}"))
        width = max((len(name) for name, _ in rows), default=0)
        return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)
