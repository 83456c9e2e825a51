"""The MCP Inspector's command line as a client, over stdio and HTTP, in both protocol eras (V-04).

Every request is a process of its own, as a person at a terminal would make it.
"""

import json
import subprocess
from typing import Any

from checks import Checks, arguments, problem_with_result

ERAS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
SECONDS_PER_REQUEST = 60


class Refused(Exception):
    """The Inspector ended with an error of its own or reported one from the server."""


def inspect(target: list[str], era: str, method: str, *options: str) -> dict[str, Any]:
    command = ["mcp-inspector", "--cli", *target, "--protocol-era", era, "--method", method, *options, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_PER_REQUEST, check=False)
    if done.returncode != 0:
        raise Refused(f"exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    return json.loads(done.stdout)["result"]


def converse(checks: Checks, calls: list[dict[str, Any]], target: list[str], era: str) -> None:
    opened = inspect(target, era, "initialize")
    version = opened["protocolVersion"]
    checks.that(version == ERAS[era], f"speaks {ERAS[era]}", f"got {version}")
    tools = {tool["name"]: tool for tool in inspect(target, era, "tools/list", "--strict")["tools"]}
    missing = [call["tool"] for call in calls if call["tool"] not in tools]
    checks.that(not missing, f"lists {len(tools)} tools, all with portable schemas", f"missing {missing}")
    for call in calls:
        options = ["--tool-name", call["tool"], "--tool-args-json", json.dumps(call["arguments"])]
        structured = call.get("structured", False) or "outputSchema" in tools.get(call["tool"], {})
        result = inspect(target, era, "tools/call", *options)
        checks.no_problem(problem_with_result(call, result, structured=structured), f"calls {call['tool']}")
    if "resources" in opened["capabilities"]:
        resources = inspect(target, era, "resources/list")["resources"]
        checks.that(True, f"lists {len(resources)} resources")
        for resource in resources[:1]:
            contents = inspect(target, era, "resources/read", "--uri", resource["uri"])["contents"]
            checks.that(bool(contents), f"reads {resource['uri']}", "no contents")


def main() -> None:
    given = arguments(__doc__)
    checks = Checks()
    targets = {"stdio": given.command, "http": [given.url, "--transport", "http"]}
    for transport, target in targets.items():
        for era in ERAS:
            checks.prefix = f"v04 inspector {transport} {era}"
            try:
                converse(checks, given.calls, target, era)
            except (Refused, subprocess.TimeoutExpired, LookupError, ValueError) as error:
                checks.that(False, "every request is answered", f"{type(error).__name__}: {error}")
    # Launched as in the Inspector's documentation: the binary alone, no arguments.
    checks.prefix = "inspector stdio, the binary with no arguments"
    try:
        tools = inspect(given.command[:1], "legacy", "tools/list")["tools"]
        checks.that(bool(tools), f"lists {len(tools)} tools")
    except (Refused, subprocess.TimeoutExpired, LookupError, ValueError) as error:
        checks.that(False, "lists tools", f"{type(error).__name__}: {error}")
    checks.exit()


if __name__ == "__main__":
    main()
