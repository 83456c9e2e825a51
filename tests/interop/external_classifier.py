"""corbie's router asks a classification server on the official Python SDK, over every transport it knows."""

import argparse
import json
import sys
import tempfile
import traceback
from pathlib import Path

import anyio
from checks import Checks
from mcp import Client, StdioServerParameters

SERVER = Path(__file__).with_name("classifier_server.py")
SECONDS_PER_TRANSPORT = 60
# Results of classifier_server.py, which differ from those of corbie itself.
PROMPTS = {"Is this contract valid?": ("law", False), "What is the sum of 2 and 2?": ("math", True)}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="where classifier_server.py listens")
    parser.add_argument("command", nargs="+", help="command line of corbie on stdio")
    given = parser.parse_args()
    checks = Checks()
    transports = {
        "http": {"url": given.url, "transport": "http"},
        "streamable-http": {"url": given.url, "transport": "streamable-http"},
        "stdio": {"transport": "stdio", "command": sys.executable, "args": [str(SERVER)], "timeout": "30s"},
    }
    for transport, server in transports.items():
        checks.prefix = f"external classifier {transport}"
        try:
            with anyio.fail_after(SECONDS_PER_TRANSPORT), tempfile.TemporaryDirectory() as folder:
                settings = {"classification": {"type": "mcp", "num_categories": 3, "mcp_server": server}}
                file = Path(folder, "corbie.json")
                file.write_text(json.dumps(settings), encoding="utf-8")
                await converse(checks, [*given.command, "--config", str(file)], folder)
        except Exception:
            checks.that(False, "the conversation ends without an exception", traceback.format_exc())
    checks.exit()


async def converse(checks: Checks, command: list[str], folder: str) -> None:
    program, *rest = command
    corbie = StdioServerParameters(command=program, args=rest, cwd=folder)
    async with Client(corbie, read_timeout_seconds=SECONDS_PER_TRANSPORT) as client:
        for prompt, (category, use_reasoning) in PROMPTS.items():
            answer = await client.call_tool("explain_route", {"prompt": prompt})
            route = json.loads(answer.content[0].text)
            found = (route.get("method"), route.get("category"), route.get("use_reasoning"))
            checks.that(found == ("external", category, use_reasoning), f"sorts a prompt as {category}", f"got {found}")


if __name__ == "__main__":
    anyio.run(main)
