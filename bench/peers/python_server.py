"""The official Python SDK: stdio, or stateless HTTP with JSON replies on `--port N`; both eras."""

import sys

from mcp.server.mcpserver import MCPServer

# Not a line of log per request: nobody else here writes one.
server = MCPServer("bench", log_level="ERROR")


# Plain text, as the others answer: a structured result would carry the text twice.
@server.tool(structured_output=False)
async def echo(text: str) -> str:
    """Say the text back."""
    return text


@server.tool(structured_output=False)
async def ten_kb() -> str:
    """Ten thousand bytes of text."""
    return "x" * 10_000


if "--port" in sys.argv:
    port = int(sys.argv[sys.argv.index("--port") + 1])
    server.run("streamable-http", port=port, json_response=True, stateless_http=True)
else:
    server.run("stdio")
