"""Calls of tools over MCP of 2026-07-28, over an older MCP without and with a session, and in the REST style."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field

import wire
from broken import Broken

MODERN = "2026-07-28"
LEGACY = "2025-06-18"
FACES = ["modern", "modern", "modern", "legacy", "session", "rest"]
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "many", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
# Tool errors that are valid replies to a correct call, for callers to judge.
ANSWERS = {"document_not_found", "empty_knowledge_base", "task_not_found"}
# Transient errors while the database is unavailable, or while another instance resumes a task. A write may have been
# made, or may still be.
PASSING = {"storage_unavailable", "storage_busy", "interrupted"}
# Rejections without any effect.
REFUSALS = {"too_many_tasks"}
# JSON-RPC codes for a correct call: too many requests, provider down, network failure, timeout, cancelled, and
# shutting down.
NUMBERS = {-32002, -32004, -32006, -32007, -32011, -32012}


@dataclass
class Outcome:
    # `said`: a tool reply; `refused`: no effect; `lost`: may have been executed, or may still be.
    kind: str
    said: dict = field(default_factory=dict)
    why: str = ""


class Caller:
    """Calls tools at one address."""

    def __init__(self, address: wire.Address, counts: Counter | None = None, patience: float = 20) -> None:
        self.address = address
        self.counts = Counter() if counts is None else counts
        self.patience = patience
        # The session id of the older MCP version, once there is one.
        self.session: str | None = None

    async def call(self, tool: str, arguments: dict, face: str = "modern", patience: float | None = None) -> Outcome:
        if face == "session":
            return self._count(await self._in_session(tool, arguments, patience), face)
        if face == "rest":
            path, headers, body = "/mcp/tools/call", {}, {"name": tool, "arguments": arguments}
        else:
            path, headers, body = "/mcp", *_message(face, "tools/call", {"name": tool, "arguments": arguments}, tool)
        return self._count(await self._post(path, headers, body, patience), face)

    async def begin_session(self) -> Outcome | None:
        """Begins a session; gives what went wrong."""
        client = {"name": "many", "version": "1"}
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client}
        headers, body = _message("legacy", "initialize", params)
        reply = await self._exchange("/mcp", headers, body, None)
        if isinstance(reply, Outcome):
            return reply
        self.session = reply.headers.get("mcp-session-id")
        if self.session is None:
            return _of_reply(reply)
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        told = await self._exchange("/mcp", {**headers, "Mcp-Session-Id": self.session}, initialized, None)
        return told if isinstance(told, Outcome) else None

    async def _in_session(self, tool: str, arguments: dict, patience: float | None) -> Outcome:
        """Goes on with the session, wherever the call leads; begins another where it is not known."""
        if self.session is None and (failed := await self.begin_session()):
            return failed if failed.kind != "said" else Outcome("lost", why="no session")
        headers, body = _message("legacy", "tools/call", {"name": tool, "arguments": arguments})
        reply = await self._exchange("/mcp", {**headers, "Mcp-Session-Id": self.session}, body, patience)
        if isinstance(reply, Outcome):
            return reply
        if reply.status == 404:
            # A freshly started instance knows no session before it has reached the database.
            self.session = None
            self.counts["sessions not known"] += 1
            return Outcome("refused", why="the session is not known")
        return _of_reply(reply)

    async def cancel(self, task: str) -> Outcome:
        headers, body = _message("legacy", "tools/cancel", {"taskId": task})
        return self._count(await self._post("/mcp", headers, body, None), "cancel")

    async def must(self, tool: str, arguments: dict) -> dict:
        """What a tool says when nothing is wrong any more."""
        outcome = await self.call(tool, arguments)
        if outcome.kind != "said":
            raise Broken(f"{tool} {arguments} at {self.address[1]}, with nothing broken: {outcome.why}")
        return outcome.said

    async def get(self, path: str) -> wire.Reply:
        return await wire.exchange(self.address, "GET", path, {}, patience=self.patience)

    async def _post(self, path: str, headers: dict, body: dict, patience: float | None) -> Outcome:
        reply = await self._exchange(path, headers, body, patience)
        return reply if isinstance(reply, Outcome) else _of_reply(reply)

    async def _exchange(self, path: str, headers: dict, body: dict, patience: float | None) -> wire.Reply | Outcome:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        try:
            return await wire.exchange(self.address, "POST", path, headers, body, patience or self.patience)
        except wire.LOST as error:
            return Outcome("lost", why="no answer in time" if isinstance(error, asyncio.TimeoutError) else "cut off")

    def _count(self, outcome: Outcome, face: str) -> Outcome:
        self.counts["calls"] += 1
        self.counts[f"face {face}"] += 1
        if outcome.kind != "said":
            self.counts["unanswered" if outcome.kind == "lost" else "refused"] += 1
            self.counts[f"told {outcome.why.split(':')[0]}"] += 1
        return outcome


def _message(face: str, method: str, params: dict, name: str | None = None) -> tuple[dict, dict]:
    headers = {"MCP-Protocol-Version": MODERN if face == "modern" else LEGACY}
    if face == "modern":
        params = {**params, "_meta": META}
        headers["Mcp-Method"] = method
        if name is not None:
            headers["Mcp-Name"] = name
    return headers, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _of_reply(reply: wire.Reply) -> Outcome:
    text = reply.text()
    if reply.headers.get("content-type", "").startswith("text/event-stream"):
        events = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]
        text = events[-1] if events else ""
    try:
        message = json.loads(text)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        if reply.status >= 500:
            return Outcome("lost", why=f"status {reply.status}")
        raise Broken(f"no answer at all: {reply.status} {text!r}")
    if "error" in message and "code" in (message["error"] if isinstance(message["error"], dict) else {}):
        return _of_error(reply.status, message["error"])
    if reply.status >= 500 or reply.status == 429:
        return Outcome("lost", why=f"status {reply.status}: {text}")
    if reply.status != 200:
        raise Broken(f"a call that is right is told: {reply.status} {text}")
    return _of_result(message.get("result", message))


def _of_error(status: int, error: dict) -> Outcome:
    number = error["code"]
    # The 2026-07-28 protocol offsets application codes by 1000.
    number = number - 1000 if -31019 <= number <= -31000 else number
    kind = (error.get("data") or {}).get("error_type")
    if kind == "TaskNotFound":
        return Outcome("said", {"error": "task_not_found", "message": error.get("message")})
    if "has ended" in error.get("message", ""):
        return Outcome("said", {"error": "task_ended", "message": error["message"]})
    if number in NUMBERS or status in (429, 503, 504):
        return Outcome("lost", why=f"error {number}: {error}")
    if kind == "KnowledgeError" and error["data"]["error"] in PASSING:
        return Outcome("lost", why=f"{error['data']['error']}: {error['message']}")
    raise Broken(f"a call that is right is told: {error}")


def _of_result(result: dict) -> Outcome:
    said = result.get("structuredContent")
    if said is None:
        content = result.get("content") or [{}]
        try:
            said = json.loads(content[0].get("text", ""))
        except ValueError:
            said = {}
        if not result.get("content"):
            said = result
    error = said.get("error")
    code = error.get("type") if isinstance(error, dict) else error
    if not code or "task_id" in said or "saved" in said or code in ANSWERS:
        return Outcome("said", said)
    if code in PASSING:
        return Outcome("lost", said, f"{code}: {said.get('message')}")
    if code in REFUSALS:
        return Outcome("refused", said, f"{code}: {said.get('message')}")
    raise Broken(f"a call that is right is told: {said}")
