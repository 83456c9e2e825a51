"""Instances of the program, each with its own home folder, settings and port."""

import asyncio
import os
import signal
import socket
import time
from pathlib import Path

import http_client
from invariant_violation import InvariantViolation
from mcp_client import McpClient

SETTINGS = """\
server: {{ listen: ['127.0.0.1:{port}'], tool_timeout_seconds: 60, shutdown_grace_seconds: 5 }}
trust: {{ all: trusted }}
knowledge: {{ storage_path: {home}/store, chunk_size: 64, chunk_overlap: 8 }}
classification: {{ taxonomy: {home}/taxonomy.yaml }}
providers: {{ detect_ports: [], mock: {{}} }}
"""
# The initial taxonomy of every instance; later the saved one applies.
TAXONOMY = "categories:\n  - name: general\n    description: Whatever fits nowhere else\n"
START_TIMEOUT = 30
# Log messages not explained by a client, the database or a signal: src/telemetry/mod.rs logs panics with the second.
INTERNAL_ERRORS = ("panicked", "panic; set `log.level")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Instance:
    def __init__(self, number: int, folder: Path, store: str, replicas: list[str] | None = None) -> None:
        self.number = number
        self.home = folder / f"instance{number}"
        self.address = ("127.0.0.1", _free_port())
        self.process: asyncio.subprocess.Process | None = None
        self.is_paused = False
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

    def is_running(self) -> bool:
        return self.process is not None and self.process.returncode is None

    def mcp_client(self, timeout: float = 20) -> McpClient:
        return McpClient(self.address, timeout=timeout)

    async def start(self) -> float:
        """Starts the instance and waits for its first response; returns the duration."""
        started = time.monotonic()
        with open(self.home / "log.txt", "ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                os.environ["CORBIE"], "--config", str(self.home / "settings.yaml"), "serve",
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=log,
                env=self.environment, cwd=self.home,
            )
        while time.monotonic() < started + START_TIMEOUT:
            if not self.is_running():
                raise InvariantViolation(f"{self.name} exited with {self.process.returncode}:\n{self.log_tail()}")
            try:
                if (await self.mcp_client(5).get("/live")).status == 200:
                    return time.monotonic() - started
            except http_client.CONNECTION_ERRORS:
                pass
            await asyncio.sleep(0.05)
        raise InvariantViolation(f"{self.name} does not respond after {START_TIMEOUT} s:\n{self.log_tail()}")

    async def kill(self) -> None:
        if self.is_running():
            self.process.kill()
            await self.process.wait()
        self.is_paused = False

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        if self.is_running():
            self.process.send_signal(signal.SIGCONT)
        self.is_paused = False

    def log_tail(self, count: int = 12) -> str:
        log = self.home / "log.txt"
        return "\n".join(log.read_text(errors="replace").splitlines()[-count:]) if log.exists() else ""

    def check_log(self) -> None:
        """The log contains no internal error, from any start of this instance."""
        log = self.home / "log.txt"
        for line in log.read_text(errors="replace").splitlines() if log.exists() else []:
            if any(message in line for message in INTERNAL_ERRORS):
                raise InvariantViolation(f"{self.name}: internal error: {line}")
