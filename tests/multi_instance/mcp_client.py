"""MCP client: tool calls over 2026-07-28, over an earlier version without and with a session, and in REST style."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field

import http_client
from invariant_violation import InvariantViolation

MODERN = "2026-07-28"
LEGACY = "2025-06-18"
# Protocols to choose from; repeated ones are chosen more often.
PROTOCOLS = ["modern", "modern", "modern", "legacy", "session", "rest"]
CLIENT_INFO = {"name": "multi-instance", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
    "io.modelcontextprotocol/clientCapabilities": {},
}
# Tool errors that are valid results of a correct call, for the tests to judge.
RESULT_ERRORS = {"document_not_found", "empty_knowledge_base", "task_not_found"}
# Transient errors while the database is unavailable, or while another instance resumes a task. The write is in doubt.
TRANSIENT_ERRORS = {"storage_unavailable", "storage_busy", "interrupted"}
# Rejections without any effect.
REFUSALS = {"too_many_tasks"}
# JSON-RPC codes for a correct call: too many requests, provider down, network failure, timeout, cancelled, and
# shutting down.
TRANSIENT_CODES = {-32002, -32004, -32006, -32007, -32011, -32012}


@dataclass
class Outcome:
    # `answered`: a tool result; `refused`: no effect; `lost`: in doubt, may have been executed or may still be.
    kind: str
    result: dict = field(default_factory=dict)
    reason: str = ""


class McpClient:
    """Calls tools at one address."""

    def __init__(self, address: http_client.Address, counts: Counter | None = None, timeout: float = 20) -> None:
        self.address = address
        self.counts = Counter() if counts is None else counts
        self.timeout = timeout
        # The session id of the earlier MCP version, once there is one.
        self.session: str | None = None

    async def call(
        self, tool: str, arguments: dict, protocol: str = "modern", timeout: float | None = None
    ) -> Outcome:
        if protocol == "session":
            return self._count(await self._call_in_session(tool, arguments, timeout), protocol)
        params = {"name": tool, "arguments": arguments}
        if protocol == "rest":
            path, headers, body = "/mcp/tools/call", {}, params
        else:
            path, headers, body = "/mcp", *_message(protocol, "tools/call", params, tool)
        return self._count(await self._post(path, headers, body, timeout), protocol)

    async def begin_session(self) -> Outcome | None:
        """Begins a session; returns the outcome if that fails."""
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT_INFO}
        headers, body = _message("legacy", "initialize", params)
        response = await self._request("/mcp", headers, body, None)
        if isinstance(response, Outcome):
            return response
        self.session = response.headers.get("mcp-session-id")
        if self.session is None:
            return _outcome_of_response(response)
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        response = await self._request("/mcp", {**headers, "Mcp-Session-Id": self.session}, initialized, None)
        return response if isinstance(response, Outcome) else None

    async def _call_in_session(self, tool: str, arguments: dict, timeout: float | None) -> Outcome:
        """Continues the session on whichever instance receives the call; begins a new one if it is unknown there."""
        if self.session is None and (failure := await self.begin_session()):
            return failure if failure.kind != "answered" else Outcome("lost", reason="no session")
        headers, body = _message("legacy", "tools/call", {"name": tool, "arguments": arguments})
        response = await self._request("/mcp", {**headers, "Mcp-Session-Id": self.session}, body, timeout)
        if isinstance(response, Outcome):
            return response
        if response.status == 404:
            # A freshly started instance knows no session before it has reached the database.
            self.session = None
            self.counts["unknown sessions"] += 1
            return Outcome("refused", reason="unknown session")
        return _outcome_of_response(response)

    async def cancel(self, task: str) -> Outcome:
        headers, body = _message("legacy", "tools/cancel", {"taskId": task})
        return self._count(await self._post("/mcp", headers, body, None), "cancel")

    async def call_checked(self, tool: str, arguments: dict) -> dict:
        """Calls a tool while no fault is active; returns its result."""
        outcome = await self.call(tool, arguments)
        if outcome.kind != "answered":
            raise InvariantViolation(f"{tool} {arguments} at {self.address[1]} without a fault: {outcome.reason}")
        return outcome.result

    async def get(self, path: str) -> http_client.HttpResponse:
        return await http_client.request(self.address, "GET", path, {}, timeout=self.timeout)

    async def _post(self, path: str, headers: dict, body: dict, timeout: float | None) -> Outcome:
        response = await self._request(path, headers, body, timeout)
        return response if isinstance(response, Outcome) else _outcome_of_response(response)

    async def _request(
        self, path: str, headers: dict, body: dict, timeout: float | None
    ) -> http_client.HttpResponse | Outcome:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        try:
            return await http_client.request(self.address, "POST", path, headers, body, timeout or self.timeout)
        except http_client.CONNECTION_ERRORS as error:
            is_timeout = isinstance(error, asyncio.TimeoutError)
            return Outcome("lost", reason="timeout" if is_timeout else "disconnected")

    def _count(self, outcome: Outcome, protocol: str) -> Outcome:
        self.counts["calls"] += 1
        self.counts[f"protocol {protocol}"] += 1
        if outcome.kind != "answered":
            self.counts["unanswered" if outcome.kind == "lost" else "refused"] += 1
            self.counts[f"error: {outcome.reason.split(':')[0]}"] += 1
        return outcome


def _message(protocol: str, method: str, params: dict, name: str | None = None) -> tuple[dict, dict]:
    """The headers and the body of a request."""
    headers = {"MCP-Protocol-Version": MODERN if protocol == "modern" else LEGACY}
    if protocol == "modern":
        params = {**params, "_meta": META}
        headers["Mcp-Method"] = method
        if name is not None:
            headers["Mcp-Name"] = name
    return headers, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _outcome_of_response(response: http_client.HttpResponse) -> Outcome:
    text = response.text()
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        events = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]
        text = events[-1] if events else ""
    try:
        message = json.loads(text)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        if response.status >= 500:
            return Outcome("lost", reason=f"status {response.status}")
        raise InvariantViolation(f"invalid response: {response.status} {text!r}")
    if "error" in message and "code" in (message["error"] if isinstance(message["error"], dict) else {}):
        return _outcome_of_error(response.status, message["error"])
    if response.status >= 500 or response.status == 429:
        return Outcome("lost", reason=f"status {response.status}: {text}")
    if response.status != 200:
        raise InvariantViolation(f"a valid call failed: {response.status} {text}")
    return _outcome_of_result(message.get("result", message))


def _outcome_of_error(status: int, error: dict) -> Outcome:
    code = error["code"]
    # The 2026-07-28 protocol offsets application codes by 1000.
    code = code - 1000 if -31019 <= code <= -31000 else code
    error_type = (error.get("data") or {}).get("error_type")
    if error_type == "TaskNotFound":
        return Outcome("answered", {"error": "task_not_found", "message": error.get("message")})
    if "already finished" in error.get("message", ""):
        return Outcome("answered", {"error": "task_ended", "message": error["message"]})
    if code in TRANSIENT_CODES or status in (429, 503, 504):
        return Outcome("lost", reason=f"error {code}: {error}")
    if error_type == "KnowledgeError" and error["data"]["error"] in TRANSIENT_ERRORS:
        return Outcome("lost", reason=f"{error['data']['error']}: {error['message']}")
    raise InvariantViolation(f"a valid call failed: {error}")


def _outcome_of_result(result: dict) -> Outcome:
    output = result.get("structuredContent")
    if output is None:
        content = result.get("content") or [{}]
        try:
            output = json.loads(content[0].get("text", ""))
        except ValueError:
            output = {}
        if not result.get("content"):
            output = result
    error = output.get("error")
    code = error.get("type") if isinstance(error, dict) else error
    if not code or "task_id" in output or "saved" in output or code in RESULT_ERRORS:
        return Outcome("answered", output)
    if code in TRANSIENT_ERRORS:
        return Outcome("lost", output, f"{code}: {output.get('message')}")
    if code in REFUSALS:
        return Outcome("refused", output, f"{code}: {output.get('message')}")
    raise InvariantViolation(f"a valid call failed: {output}")
