"""A client that follows the list of documents at one instance."""

import asyncio
import json
import time

import wire
from mcp import META, MODERN

HEADERS = {
    "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen",
}


class Listener:
    def __init__(self, address: wire.Address) -> None:
        self.address = address
        # Arrival times of notifications.
        self.heard: list[float] = []
        self._news = asyncio.Event()
        self._ready = asyncio.Event()
        self._task = asyncio.create_task(self._listen())

    async def ready(self) -> None:
        await asyncio.wait_for(self._ready.wait(), 10)

    def stop(self) -> None:
        self._task.cancel()

    def forget(self) -> None:
        self.heard.clear()
        self._news.clear()

    async def next(self, patience: float) -> float | None:
        """When the first news since `forget` came."""
        try:
            await asyncio.wait_for(self._news.wait(), patience)
        except asyncio.TimeoutError:
            return None
        return self.heard[0]

    async def _listen(self) -> None:
        params = {"notifications": {"resourcesListChanged": True}, "_meta": META}
        body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
        reader, writer = await wire.open_request(self.address, "POST", "/mcp", HEADERS, body)
        try:
            await wire.head(reader)
            rest = b""
            async for piece in wire.pieces(reader):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.startswith(b"data:") and line[5:].strip():
                        self._hear(json.loads(line[5:]).get("method", ""))
        except wire.LOST:
            pass
        finally:
            writer.close()

    def _hear(self, method: str) -> None:
        if method.endswith("subscriptions/acknowledged"):
            self._ready.set()
        elif method == "notifications/resources/list_changed":
            self.heard.append(time.monotonic())
            self._news.set()
