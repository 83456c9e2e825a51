"""What the Python witnesses share: their arguments, one printed line per check, and the rule for a good tool result."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Arguments:
    url: str
    calls: list[dict[str, Any]]
    command: list[str]


def arguments(description: str) -> Arguments:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--url", required=True, help="MCP endpoint of a running server, such as http://127.0.0.1:3000/mcp")
    parser.add_argument("--calls", required=True, help="JSON file: the tool calls to make and what to expect of them")
    parser.add_argument("command", nargs="+", help="command line of the same server on stdio")
    parsed = parser.parse_args()
    with open(parsed.calls, encoding="utf-8") as file:
        return Arguments(parsed.url, json.load(file), parsed.command)


@dataclass
class Checks:
    """Counts and prints. A failed check never stops the ones after it."""

    failed: int = 0
    prefix: str = field(default="")

    def that(self, holds: bool, what: str, otherwise: str = "") -> None:
        if holds:
            print(f"ok    {self.prefix}: {what}", flush=True)
        else:
            self.failed += 1
            print(f"FAIL  {self.prefix}: {what}{': ' + otherwise if otherwise else ''}", flush=True)

    def no_problem(self, problem: str | None, what: str) -> None:
        self.that(problem is None, what, problem or "")

    def exit(self) -> None:
        sys.exit(1 if self.failed else 0)


def problem_with_result(call: dict[str, Any], result: dict[str, Any], *, structured: bool) -> str | None:
    """What is wrong with a `tools/call` result, given in wire form.

    Clients show either `content` or `structuredContent`, so both must carry the same object.
    """
    if result.get("isError"):
        return f"the tool reports an error: {str(result.get('content'))[:300]}"
    content = result.get("content") or []
    if not content or content[0].get("type") != "text":
        return f"the first content item is not text: {str(content)[:300]}"
    text = content[0]["text"]
    if "contains" in call and call["contains"] not in text:
        return f"the text lacks `{call['contains']}`: {text[:300]}"
    if "structuredContent" not in result:
        return "structuredContent is missing" if structured else None
    try:
        parsed = json.loads(text)
    except ValueError:
        return f"structuredContent is given, but the text is not JSON: {text[:300]}"
    if parsed != result["structuredContent"]:
        return f"text and structuredContent differ: {text[:300]}"
    return None


def same(checks: Checks, what: str, found: Any, wanted: Any) -> None:
    checks.that(found == wanted, what, f"got {found!r}, not {wanted!r}")


def raises(
    checks: Checks,
    kind: type[Exception],
    ask: Callable[[], Any],
    wrong: Callable[[Any, float], bool] = lambda error, took: False,
) -> Any:
    """The error that a call raises, if it is of this kind and nothing is wrong with it or the seconds it took."""
    what = f"raises {kind.__name__}"
    started = time.monotonic()
    try:
        ask()
    except kind as error:
        took = time.monotonic() - started
        checks.that(not wrong(error, took), what, f"{error!r} after {took} s")
        return error
    except Exception as error:
        checks.that(False, what, repr(error))
    else:
        checks.that(False, what, "nothing is raised")
    return None


def fails(checks: Checks, kind: type[Exception], ask: Callable[[], Any]) -> Any:
    """The error of a call to corbie, if it is of this kind, says something and comes without the SDK's own retries."""
    return raises(checks, kind, ask, lambda error, took: not error.message or took >= 5)
