"""The official Python SDK as a client, over stdio and HTTP, in every way it can open a connection."""

import traceback
import warnings
from typing import Any

import anyio
from checks import Arguments, Checks, arguments, problem_with_result
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

# How the client connects, and the version both sides must agree on: the handshake; `server/discover` first; and the
# newest version directly, without negotiation.
OPENINGS = [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]
SECONDS_PER_CONNECTION = 60


async def main() -> None:
    given = arguments(__doc__)
    checks = Checks()
    command, *rest = given.command
    servers = {"stdio": StdioServerParameters(command=command, args=rest), "http": given.url}
    for transport, server in servers.items():
        for mode, version in OPENINGS:
            checks.prefix = f"python {transport} {mode}"
            try:
                with anyio.fail_after(SECONDS_PER_CONNECTION):
                    await converse(checks, given, server, mode, version)
            except Exception:
                checks.that(False, "the conversation ends without an exception", traceback.format_exc())
    checks.exit()


async def converse(checks: Checks, given: Arguments, server: Any, mode: str, version: str) -> None:
    noise: list[str] = []

    async def collect(message: Any) -> None:
        if isinstance(message, Exception):
            noise.append(repr(message))

    async with Client(server, mode=mode, message_handler=collect, read_timeout_seconds=30) as client:
        checks.that(client.protocol_version == version, f"speaks {version}", f"got {client.protocol_version}")
        if mode != version:  # with a pinned version the client does not learn the server's name and capabilities
            checks.that(bool(client.server_info and client.server_info.name), "the server says its name")
        if mode == "legacy":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MCPDeprecationWarning)
                await client.send_ping()
            checks.that(True, "ping")
        await call_tools(checks, given, client)
        await call_unknown_tool(checks, client)
        if client.server_capabilities.resources:
            await read_first_resource(checks, client)
        if client.server_capabilities.prompts:
            prompts = (await client.list_prompts()).prompts
            checks.that(True, f"lists {len(prompts)} prompts")
    checks.that(not noise, "nothing but protocol messages arrives", "; ".join(noise))


async def call_tools(checks: Checks, given: Arguments, client: Client) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    missing = [call["tool"] for call in given.calls if call["tool"] not in tools]
    checks.that(not missing, f"lists {len(tools)} tools", f"missing {missing}")
    for call in given.calls:
        result = await client.call_tool(call["tool"], call["arguments"])
        wire = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        tool = tools.get(call["tool"])
        structured = call.get("structured", False) or bool(tool and tool.output_schema)
        checks.no_problem(problem_with_result(call, wire, structured=structured), f"calls {call['tool']}")


async def call_unknown_tool(checks: Checks, client: Client) -> None:
    try:
        refused = (await client.call_tool("no_such_tool_anywhere", {})).is_error
    except MCPError:
        refused = True
    checks.that(refused, "an unknown tool is an error")


async def read_first_resource(checks: Checks, client: Client) -> None:
    resources = (await client.list_resources()).resources
    checks.that(True, f"lists {len(resources)} resources")
    if resources:
        contents = (await client.read_resource(resources[0].uri)).contents
        checks.that(bool(contents), f"reads {resources[0].uri}", "no contents")


if __name__ == "__main__":
    anyio.run(main)
