"""Runs `corbie extract` and reads what it says."""

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECONDS_PER_RUN = 100
SECONDS_TO_VANISH = 5
SECONDS_TO_BE_BUSY = 20


@dataclass
class Ended:
    code: int
    out: str
    err: str
    seconds: float
    # Remaining processes.
    left: list[int]

    def line(self) -> dict[str, Any]:
        return json.loads(self.out)


@dataclass
class Worker:
    """A process that reads a file, as the kernel shows it."""

    peak_megabytes: float = 0
    # Open files, except for pipes and /dev/null.
    opened: set[str] = field(default_factory=set)
    # Threads without a system call filter.
    unconfined: set[str] = field(default_factory=set)

    def see(self, process: Path) -> None:
        try:
            self.peak_megabytes = int(status_of(process)["VmHWM"].split()[0]) / 1000
            names = {os.readlink(file) for file in (process / "fd").iterdir()}
            self.opened |= {name for name in names if name != os.devnull and not name.startswith("pipe:")}
            for thread in (process / "task").iterdir():
                status = status_of(thread)
                if (status["Seccomp"], status["NoNewPrivs"]) != ("2", "1"):
                    self.unconfined.add(status["Name"])
        except (OSError, KeyError):
            # It has ended.
            return


class Corbie:
    def __init__(self, program: str, around: Path) -> None:
        self.program = program
        self.folder, self.temporary = around / "documents", around / "temporary"
        self.folder.mkdir()
        self.temporary.mkdir()

    def run(self, *arguments: Path | str, stdin: Path | None = None, **environment: str) -> Ended:
        started = time.monotonic()
        process = self._start(*arguments, stdin=stdin, **environment)
        try:
            out, err = process.communicate(timeout=SECONDS_PER_RUN)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        return Ended(process.returncode, out, err, time.monotonic() - started, remaining(process.pid))

    def read(self, path: Path, *flags: str, **environment: str) -> dict[str, Any]:
        """The one line of JSON about a file, be it good or bad."""
        return self.run(path, "--json", *flags, **environment).line()

    def read_all(self, paths: list[Path]) -> list[dict[str, Any]]:
        """A line for each file; one run for many small ones."""
        return [json.loads(line) for line in self.run(*paths, "--json").out.splitlines()]

    def opened(self, path: Path, *flags: str, **environment: str) -> dict[str, Any]:
        """The same, of a file that must be read without any error."""
        ended = self.run(path, "--json", *flags, **environment)
        line = ended.line()
        if ended.code != 0 or "error" in line or "partial" in line:
            raise ValueError(f"{path.name} ends with {ended.code}: {ended.out[:300]}")
        return line

    def kill_while_reading(self, path: Path) -> list[int]:
        """Ends corbie once its worker is there; gives the processes that outlive it."""
        return self.end_while_reading(path, signal.SIGKILL).left

    def end_while_reading(
        self, path: Path, by: signal.Signals, processes: int = 2, busy: float = 0, **environment: str
    ) -> Ended:
        """Sends corbie a signal once so many processes are there that were busy for so many seconds."""
        process = self._start(path, **environment)
        until = time.monotonic() + SECONDS_TO_BE_BUSY
        while not is_busy(in_session(process.pid), processes, busy):
            if time.monotonic() > until or process.poll() is not None:
                process.kill()
                process.communicate()
                raise ValueError("no worker was seen at work")
            time.sleep(0.02)
        started = time.monotonic()
        process.send_signal(by)
        out, err = process.communicate()
        left = remaining(process.pid)
        return Ended(process.returncode, out, err, time.monotonic() - started, left)

    def watch(self, path: Path, **environment: str) -> list[Worker]:
        """What was seen of each worker while a file was read."""
        process = self._start(path, **environment, out=subprocess.DEVNULL)
        workers: dict[int, Worker] = {}
        while process.poll() is None:
            for pid in in_session(process.pid):
                # Before its first work the sandbox may not be complete yet.
                if pid != process.pid and is_busy([pid], 1, 0.2):
                    workers.setdefault(pid, Worker()).see(Path(f"/proc/{pid}"))
            time.sleep(0.02)
        process.communicate()
        return list(workers.values())

    def _start(
        self, *arguments: Path | str, stdin: Path | None = None, out: int = subprocess.PIPE, **environment: str
    ) -> subprocess.Popen[str]:
        # In a separate session: all child processes stay in it, even when orphaned.
        with (stdin or Path(os.devnull)).open("rb") as file:
            return subprocess.Popen(
                [self.program, "extract", *map(str, arguments)],
                stdin=file,
                stdout=out,
                stderr=out,
                encoding="utf-8",
                env=os.environ | {"TMPDIR": str(self.temporary)} | environment,
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
            # The preceding name may contain spaces and brackets.
            state, _, _, its_session = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(its_session) == session and state != "Z":
            found.append(int(path.parent.name))
    return found


def status_of(process: Path) -> dict[str, str]:
    lines = (process / "status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def is_busy(processes: list[int], wanted: int, seconds: float) -> bool:
    """Whether there are so many processes, which worked so many seconds together."""
    ticks = 0
    for process in processes:
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return len(processes) >= wanted and ticks >= seconds * os.sysconf("SC_CLK_TCK")
