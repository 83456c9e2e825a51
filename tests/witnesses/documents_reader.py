"""Runs `corbie extract` and reads what it says."""

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS_PER_RUN = 100
SECONDS_TO_VANISH = 5


@dataclass
class Ended:
    code: int
    out: str
    err: str
    seconds: float
    # Processes it left.
    left: list[int]

    def line(self) -> dict[str, Any]:
        return json.loads(self.out)


class Corbie:
    def __init__(self, program: str, around: Path) -> None:
        self.program = program
        self.folder, self.temporary = around / "documents", around / "temporary"
        self.folder.mkdir()
        self.temporary.mkdir()

    def run(self, *arguments: Path | str) -> Ended:
        started = time.monotonic()
        process = self._start(*arguments)
        try:
            out, err = process.communicate(timeout=SECONDS_PER_RUN)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        return Ended(process.returncode, out, err, time.monotonic() - started, remaining(process.pid))

    def read(self, path: Path) -> dict[str, Any]:
        """The one line of JSON about a file, be it good or bad."""
        return self.run(path, "--json").line()

    def opened(self, path: Path) -> dict[str, Any]:
        """The same, of a file that must be read without any error."""
        ended = self.run(path, "--json")
        line = ended.line()
        if ended.code != 0 or "error" in line or "partial" in line:
            raise ValueError(f"{path.name} ends with {ended.code}: {ended.out[:300]}")
        return line

    def kill_while_reading(self, path: Path) -> list[int]:
        """Ends corbie once its worker is there; gives the processes that outlive it."""
        process = self._start(path)
        until = time.monotonic() + SECONDS_TO_VANISH
        while len(in_session(process.pid)) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        if len(in_session(process.pid)) < 2:
            raise ValueError("no worker was seen")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return remaining(process.pid)

    def _start(self, *arguments: Path | str) -> subprocess.Popen[str]:
        # In a session of its own: whatever it starts stays in it, also when it is orphaned.
        return subprocess.Popen(
            [self.program, "extract", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=os.environ | {"TMPDIR": str(self.temporary)},
            start_new_session=True,
        )


def blocks(read: dict[str, Any], kind: str | None = None) -> list[dict[str, Any]]:
    """The blocks of all pages, or those of one kind."""
    found = [block for page in read["pages"] for block in page["blocks"]]
    return [block for block in found if kind in (None, block["kind"])]


def texts(read: dict[str, Any], kind: str) -> list[str]:
    return [block["text"] for block in blocks(read, kind)]


def remaining(session: int) -> list[int]:
    """The processes of a session that are still there after a while."""
    until = time.monotonic() + SECONDS_TO_VANISH
    while (left := in_session(session)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def in_session(session: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name before may have spaces and brackets in it.
            state, _, _, its_session = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(its_session) == session and state != "Z":
            found.append(int(path.parent.name))
    return found
