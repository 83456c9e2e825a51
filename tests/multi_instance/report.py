"""Report of a run: a line after each phase, and a table of counts and durations at the end."""

import time
from collections import Counter


class Report:
    def __init__(self) -> None:
        self.started = time.monotonic()
        self.counts: Counter = Counter()
        self.faults: Counter = Counter()
        # Durations in seconds, and the limits of their maximums.
        self.durations: dict[str, list[float]] = {}
        self.limits: dict[str, float] = {}

    def phase(self, text: str) -> None:
        print(f"{time.monotonic() - self.started:7.1f} s  {text}", flush=True)

    def record_duration(self, what: str, seconds: float, limit: float | None = None) -> None:
        self.durations.setdefault(what, []).append(seconds)
        if limit is not None:
            self.limits[what] = limit

    def exceeded_limits(self) -> list[str]:
        return [
            f"{what}: {max(self.durations[what]):.2f} s exceeds the limit of {limit:g} s"
            for what, limit in self.limits.items() if max(self.durations[what]) > limit
        ]

    def table(self) -> str:
        rows = [(name, str(count)) for name, count in sorted(self.counts.items())]
        rows += [(f"fault: {name}", str(count)) for name, count in sorted(self.faults.items())]
        for what, seconds in self.durations.items():
            seconds = sorted(seconds)
            limit = f", limit {self.limits[what]:g} s" if what in self.limits else ""
            median = seconds[len(seconds) // 2]
            rows.append((what, f"max {seconds[-1]:.2f} s, median {median:.2f} s of {len(seconds)}{limit}"))
        width = max((len(name) for name, _ in rows), default=0)
        return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)
