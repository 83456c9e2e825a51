"""MCP client that subscribes to list changes of one instance."""

import asyncio
import json
import time

import http_client
from mcp_client import META, MODERN

HEADERS = {
    "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen",
}
SUBSCRIBE_TIMEOUT = 10


class SubscriptionClient:
    def __init__(self, address: http_client.Address) -> None:
        self.address = address
        # Arrival times of notifications.
        self.received_at: list[float] = []
        self._received = asyncio.Event()
        self._acknowledged = asyncio.Event()
        self._task = asyncio.create_task(self._listen())

    async def wait_until_subscribed(self) -> None:
        await asyncio.wait_for(self._acknowledged.wait(), SUBSCRIBE_TIMEOUT)

    def stop(self) -> None:
        self._task.cancel()

    def clear(self) -> None:
        self.received_at.clear()
        self._received.clear()

    async def wait_for_notification(self, timeout: float) -> float | None:
        """The arrival time of the first notification since `clear`."""
        try:
            await asyncio.wait_for(self._received.wait(), timeout)
        except asyncio.TimeoutError:
            return None
        return self.received_at[0]

    async def _listen(self) -> None:
        params = {"notifications": {"resourcesListChanged": True}, "_meta": META}
        body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
        reader, writer = await http_client.send_request(self.address, "POST", "/mcp", HEADERS, body)
        try:
            await http_client.read_head(reader)
            rest = b""
            async for chunk in http_client.read_chunks(reader):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.startswith(b"data:") and line[5:].strip():
                        self._handle(json.loads(line[5:]).get("method", ""))
        except http_client.CONNECTION_ERRORS:
            pass
        finally:
            writer.close()

    def _handle(self, method: str) -> None:
        if method.endswith("subscriptions/acknowledged"):
            self._acknowledged.set()
        elif method == "notifications/resources/list_changed":
            self.received_at.append(time.monotonic())
            self._received.set()
