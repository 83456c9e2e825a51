"""corbie on a free port, with `server.oauth` set, in a folder of its own."""

import json
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

SECONDS_TO_START = 60
# A proxy from the environment must not be used for a server on loopback.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Corbie:
    def __init__(self, program: str, oauth: dict[str, Any], port: int | None = None) -> None:
        self.program = program
        # Far more wrong tokens are sent than an address may send otherwise.
        server = {"oauth": oauth, "rate_limit": {"per_second": 100_000}}
        self.settings = {"server": server, "providers": {"mock": {"type": "mock"}, "detect_ports": []}}
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def __enter__(self) -> "Corbie":
        self.folder = tempfile.TemporaryDirectory()
        settings = Path(self.folder.name, "corbie.json")
        settings.write_text(json.dumps(self.settings), encoding="utf-8")
        command = [self.program, "--config", str(settings), "serve", "--port", str(self.port)]
        self.process = subprocess.Popen(command, cwd=self.folder.name, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + SECONDS_TO_START
        while True:
            try:
                OPENER.open(f"http://127.0.0.1:{self.port}/live", timeout=5).close()
                return self
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    self.__exit__()
                    raise
                time.sleep(0.05)

    def __exit__(self, *_: Any) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)
        self.folder.cleanup()

    def status(self, token: str) -> int:
        """What becomes of a call with this token."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        body = json.dumps({"name": "inspect_server", "arguments": {}}).encode()
        request = urllib.request.Request(f"{self.url}/tools/call", data=body, headers=headers, method="POST")
        try:
            with OPENER.open(request, timeout=30) as response:
                return response.status
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
