"""A classification server on the official Python SDK: what corbie's router asks when its categories live elsewhere.

    classifier_server.py                 over stdin and stdout
    classifier_server.py --port 8090     over HTTP at /mcp: JSON-RPC, with sessions and streams of events

It sorts by patterns, so that a witness knows what it says.
"""

import argparse
import json
import re

from mcp.server.mcpserver import MCPServer

CATEGORIES = {
    "math": (r"\b(sum|derivative|integral|equation)\b", "You are a mathematics expert.", "Numbers and proofs"),
    "law": (r"\b(contract|court|lawyer)\b", "You are a lawyer.", "Rights and duties"),
    "general": (r"", "You are a helpful assistant.", "Everything else"),
}
SURE = 0.9

server = MCPServer("python-classifier", version="1.0.0")


@server.tool(structured_output=False)
def list_categories() -> str:
    """Lists the categories."""
    return json.dumps(
        {
            "categories": list(CATEGORIES),
            "category_system_prompts": {name: prompt for name, (_, prompt, _) in CATEGORIES.items()},
            "category_descriptions": {name: description for name, (_, _, description) in CATEGORIES.items()},
        }
    )


@server.tool(structured_output=False)
def classify_text(text: str, with_probabilities: bool = False) -> str:
    """Tells the category of a text."""
    if not text.strip():
        return json.dumps({"error": "the text is empty"})
    patterns = [pattern for pattern, _, _ in CATEGORIES.values()]
    category = next(number for number, pattern in enumerate(patterns) if re.search(pattern, text, re.IGNORECASE))
    answer = {"class": category, "confidence": SURE, "model": "acme/large", "use_reasoning": category == 0}
    if with_probabilities:
        others = (1 - SURE) / (len(CATEGORIES) - 1)
        answer["probabilities"] = [SURE if number == category else others for number in range(len(CATEGORIES))]
    return json.dumps(answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, help="listen on this port of loopback instead of stdin")
    port = parser.parse_args().port
    if port is None:
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=port)


if __name__ == "__main__":
    main()
