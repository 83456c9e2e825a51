"""Instances of the program: each a machine of its own, as far as it can tell."""

import asyncio
import os
import signal
import socket
import time
from pathlib import Path

import wire
from broken import Broken
from mcp import Caller

SETTINGS = """\
server: {{ listen: ['127.0.0.1:{port}'], tool_timeout_seconds: 60, shutdown_grace_seconds: 5 }}
trust: {{ all: trusted }}
knowledge: {{ storage_path: {home}/store, chunk_size: 64, chunk_overlap: 8 }}
classification: {{ taxonomy: {home}/taxonomy.yaml }}
providers: {{ detect_ports: [], mock: {{}} }}
"""
# The initial taxonomy of every machine; later the saved one applies.
TAXONOMY = "categories:\n  - name: general\n    description: Whatever fits nowhere else\n"
STARTS_WITHIN = 30
# Log messages not explained by a client, the database or a signal.
FAULTS = ("panicked", "a fault of corbie itself")


def _free_port() -> int:
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return each.getsockname()[1]


class Instance:
    def __init__(self, number: int, folder: Path, store: str, replicas: list[str] | None = None) -> None:
        self.number = number
        self.home = folder / f"instance{number}"
        self.address = ("127.0.0.1", _free_port())
        self.process: asyncio.subprocess.Process | None = None
        self.is_frozen = False
        self.home.mkdir(parents=True)
        (self.home / "settings.yaml").write_text(SETTINGS.format(port=self.address[1], home=self.home))
        (self.home / "taxonomy.yaml").write_text(TAXONOMY)
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.home), "NO_COLOR": "1",
            "CORBIE_KNOWLEDGE__STORE": store,
        }
        if replicas:
            listed = ", ".join(f'"{each}"' for each in replicas)
            self.environment["CORBIE_KNOWLEDGE__STORE_REPLICAS"] = f"[{listed}]"

    @property
    def name(self) -> str:
        return f"instance {self.number}"

    def lives(self) -> bool:
        return self.process is not None and self.process.returncode is None

    def caller(self, patience: float = 20) -> Caller:
        return Caller(self.address, patience=patience)

    async def start(self) -> float:
        """Starts it, waits for its first answer, and gives how long that took."""
        begun = time.monotonic()
        with open(self.home / "log.txt", "ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                os.environ["CORBIE"], "--config", str(self.home / "settings.yaml"), "serve",
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=log,
                env=self.environment, cwd=self.home,
            )
        while time.monotonic() < begun + STARTS_WITHIN:
            if not self.lives():
                raise Broken(f"{self.name} ended by itself with {self.process.returncode}:\n{self.last_lines()}")
            try:
                if (await self.caller(5).get("/live")).status == 200:
                    return time.monotonic() - begun
            except wire.LOST:
                pass
            await asyncio.sleep(0.05)
        raise Broken(f"{self.name} does not answer after {STARTS_WITHIN} s:\n{self.last_lines()}")

    async def kill(self) -> None:
        if self.lives():
            self.process.kill()
            await self.process.wait()
        self.is_frozen = False

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        self.is_frozen = True

    def thaw(self) -> None:
        if self.lives():
            self.process.send_signal(signal.SIGCONT)
        self.is_frozen = False

    def last_lines(self, count: int = 12) -> str:
        log = self.home / "log.txt"
        return "\n".join(log.read_text(errors="replace").splitlines()[-count:]) if log.exists() else ""

    def look_for_faults(self) -> None:
        """Nothing panicked, in none of its lives."""
        log = self.home / "log.txt"
        for line in log.read_text(errors="replace").splitlines() if log.exists() else []:
            if any(fault in line for fault in FAULTS):
                raise Broken(f"{self.name}: something panicked: {line}")
