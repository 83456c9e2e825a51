"""The semantic router's two MCP clients, replayed with nothing but the standard library.

Over HTTP it appends the method to the URL, wraps the params in a request whose `method` is empty, sends neither
`jsonrpc` nor `id`, accepts `application/json` alone, and wants the bare result. A list that fails at start leaves it
without tools. Over stdio it asks for the protocol version "" and refuses an answer newer than 2025-06-18.
"""

import json
import queue
import subprocess
import threading
import traceback
import urllib.request
from typing import Any

from checks import Checks, arguments, problem_with_result

SECONDS_PER_REQUEST = 30
MOST_PAGES = 100
VERSIONS_ITS_STDIO_CLIENT_KNOWS = ["2024-11-05", "2025-03-26", "2025-06-18"]


class Http:
    def __init__(self, url: str) -> None:
        self.url = url
        # A proxy from the environment must not be used for a server on loopback.
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def post(self, method: str, body: bytes) -> dict[str, Any]:
        """The bare result; any status but 2xx raises, as the router gives up on it."""
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "Go-http-client/1.1"}
        request = urllib.request.Request(f"{self.url}/{method}", data=body, headers=headers, method="POST")
        with self.opener.open(request, timeout=SECONDS_PER_REQUEST) as response:
            kind = response.headers.get_content_type()
            if kind != "application/json":
                raise ValueError(f"the answer to {method} is {kind}")
            result = json.load(response)
        wrapping = {"jsonrpc", "id", "result", "error"} & result.keys()
        if wrapping:
            raise ValueError(f"the answer to {method} is not a bare result: it has {sorted(wrapping)}")
        return result

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return self.post(method, compact({"method": "", "params": params}).encode())


class Stdio:
    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self.answers: queue.Queue[str] = queue.Queue()
        self.last_id = 0
        threading.Thread(target=self._collect, daemon=True).start()

    def _collect(self) -> None:
        for line in self.process.stdout:
            self.answers.put(line)

    def send(self, message: dict[str, Any]) -> None:
        self.process.stdin.write(compact({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any] | None) -> dict[str, Any]:
        self.last_id += 1
        self.send({"id": self.last_id, "method": method} | ({} if params is None else {"params": params}))
        while True:
            answer = json.loads(self.answers.get(timeout=SECONDS_PER_REQUEST))
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise ValueError(f"{method} is answered with {answer['error']}")
                return answer["result"]

    def close(self) -> int:
        """Closes the server's stdin and gives its exit code."""
        self.process.stdin.close()
        try:
            return self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def compact(message: dict[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False)


def load(client: Http | Stdio, what: str) -> list[dict[str, Any]]:
    """Every page of `what`/list."""
    items: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    for _ in range(MOST_PAGES):
        page = client.request(f"{what}/list", params)
        items += page[what]
        if not page.get("nextCursor"):
            return items
        params = {"cursor": page["nextCursor"]}
    raise ValueError(f"{what}/list has no end")


def start_and_call(checks: Checks, client: Http | Stdio, calls: list[dict[str, Any]]) -> None:
    """What the router does on either transport once it is connected."""
    names = {tool["name"] for tool in load(client, "tools")}
    missing = [call["tool"] for call in calls if call["tool"] not in names]
    checks.that(not missing, f"lists {len(names)} tools", f"missing {missing}")
    resources = load(client, "resources")
    checks.that(True, f"lists {len(resources)} resources")
    checks.that(True, f"lists {len(load(client, 'prompts'))} prompts")
    for call in calls:
        result = client.request("tools/call", {"name": call["tool"], "arguments": call["arguments"]})
        checks.no_problem(problem_with_result(call, result, structured=False), f"calls {call['tool']}")
        checks.that(result.get("isError") is False, f"{call['tool']} says isError: false", str(result)[:300])
    for resource in resources[:1]:
        contents = client.request("resources/read", {"uri": resource["uri"]})["contents"]
        checks.that(bool(contents), f"reads {resource['uri']}", "no contents")


def over_http(checks: Checks, url: str, calls: list[dict[str, Any]]) -> None:
    client = Http(url)
    identity = {"capabilities": {"roots": {}}, "clientInfo": {"name": "http-mcp-client", "version": "1.0.0"}}
    for asked in ["2024-11-05", ""]:
        opened = client.request("initialize", {"protocolVersion": asked, **identity})
        version = opened.get("protocolVersion")
        checks.that(version == "2024-11-05", f"initialize asking for `{asked}` gives 2024-11-05", f"got {version}")
    checks.that(bool(opened["serverInfo"]["name"]), "the server says its name")
    start_and_call(checks, client, calls)
    checks.that(client.post("ping", b"") == {}, "ping with an empty body")
    for what in ["tools", "resources", "prompts"]:
        checks.that(what in client.post(f"{what}/list", b""), f"{what}/list with an empty body")


def over_stdio(checks: Checks, command: list[str], calls: list[dict[str, Any]]) -> None:
    client = Stdio(command)
    try:
        identity = {"capabilities": {}, "clientInfo": {"name": "", "version": ""}}
        version = client.request("initialize", {"protocolVersion": "", **identity})["protocolVersion"]
        known = VERSIONS_ITS_STDIO_CLIENT_KNOWS
        checks.that(version in known, "initialize asking for `` gives a version it knows", f"got {version}")
        client.send({"method": "notifications/initialized", "params": {}})
        start_and_call(checks, client, calls)
        checks.that(client.request("ping", None) == {}, "ping without params")
    finally:
        code = client.close()
    checks.that(code == 0, "the server ends well when its stdin is closed", f"exit code {code}")


def main() -> None:
    given = arguments(__doc__)
    checks = Checks()
    for transport, where, talk in [("http", given.url, over_http), ("stdio", given.command, over_stdio)]:
        checks.prefix = f"router {transport}"
        try:
            talk(checks, where, given.calls)
        except Exception:
            checks.that(False, "the conversation ends without an exception", traceback.format_exc())
    checks.exit()


if __name__ == "__main__":
    main()
