"""A classification server of regular expressions, as one would write it in Python: aiohttp, `re`, one process.

    python regex_server.py --port N      serves POST /mcp/tools/call (REST style) and POST /mcp (JSON-RPC)
    python regex_server.py --time FILE   classifies the texts of FILE, a JSON list, and prints the median time of one
"""

import json
import math
import re
import statistics
import sys
import time

from aiohttp import web

MODEL = "openai/gpt-oss-20b"
DESCRIPTIONS = {
    "math": "Mathematical and computational queries",
    "science": "Scientific concepts and queries",
    "technology": "Technology and computing topics",
    "history": "Historical events and topics",
    "general": "General questions and topics",
}
RULES = {
    "math": [
        r"\d+(\.\d+)?\s*([-+*/^×÷=]|plus|minus|times|divided by)\s*\d",
        r"\b(percent|percentage|fractions?|decimals?|ratio|average|median|probability)\b",
        r"\b(solve|simplify|factor|integrate|differentiate|calculate|compute)\b",
        r"\b(equations?|algebra|calculus|geometry|derivative|integral|matrix|polynomial|logarithm)\b",
        r"\b(triangle|circle|square root|prime numbers?|area|volume|perimeter|hypotenuse)\b",
    ],
    "science": [
        r"\b(physics|chemistry|biology|astronomy|geology|scientists?)\b",
        r"\b(atoms?|molecules?|electrons?|cells?|genes?|dna|proteins?|bacteria|virus(es)?|vaccines?)\b",
        r"\b(planets?|stars?|moon|sun|galaxy|orbit|gravity|black holes?|light|energy)\b",
        r"\b(photosynthesis|evolution|species|ecosystem|climate|volcano(es)?|earthquakes?)\b",
        r"\bwhy (is|are|do|does) (the )?(sky|ocean|ice|water|leaves|birds|cats|dogs)\b",
    ],
    "technology": [
        r"\b(computers?|laptops?|phones?|software|hardware|apps?|wifi|internet|router|browser)\b",
        r"\b(python|javascript|java|rust|sql|html|css|linux|windows|docker|git)\b",
        r"\b(code|programming|function|algorithm|database|servers?|api|compiler|bug|debug)\b",
        r"\b(machine learning|neural networks?|artificial intelligence|encryption|cloud)\b",
        r"\b(cpu|gpu|ram|ssd|usb|bluetooth|password|backup)\b",
    ],
    "history": [
        r"\b(history|historical|ancient|medieval|century|centuries|dynasty|empire|civilization)\b",
        r"\b(wars?|battles?|revolution|treaty|invasion|colonies|independence)\b",
        r"\b(kings?|queens?|emperors?|pharaohs?|presidents?|napoleon|caesar|cleopatra|churchill)\b",
        r"\b(1[0-9]{3}|[0-9]+ (bc|bce|ad))\b",
        r"\b(romans?|rome|greeks?|egypt|ottoman|vikings?|soviet|renaissance)\b",
    ],
}
CATEGORIES = list(DESCRIPTIONS)
COMPILED = [[re.compile(rule, re.IGNORECASE) for rule in RULES.get(name, [])] for name in CATEGORIES]
GENERAL = CATEGORIES.index("general")
LISTING = {
    "categories": CATEGORIES,
    "category_system_prompts": {name: f"You are an expert in {name} questions." for name in CATEGORIES},
    "category_descriptions": DESCRIPTIONS,
}


def classify(text: str, with_probabilities: bool = False) -> dict:
    counts = [sum(1 for rule in rules for _ in rule.finditer(text)) for rules in COMPILED]
    if not any(counts):
        counts[GENERAL] = 1
    # A little for everybody, so that no category is impossible.
    weights = [count + 0.1 for count in counts]
    total = sum(weights)
    probabilities = [weight / total for weight in weights]
    best = max(range(len(probabilities)), key=probabilities.__getitem__)
    confidence = probabilities[best]
    ranked = sorted(zip(CATEGORIES, probabilities), key=lambda scored: -scored[1])
    answer = {
        "class": best,
        "confidence": confidence,
        "model": MODEL,
        "use_reasoning": confidence < 0.6 or len(text.split()) > 20,
        "category": CATEGORIES[best],
        "top": [{"category": name, "score": score} for name, score in ranked[:3]],
        "method": "rules",
    }
    if with_probabilities:
        answer["probabilities"] = probabilities
        answer["entropy"] = -sum(probability * math.log2(probability) for probability in probabilities)
    return answer


def call_tool(params: dict) -> dict:
    arguments = params.get("arguments") or {}
    match params.get("name"):
        case "classify_text" if isinstance(arguments.get("text"), str) and arguments["text"].strip():
            answer = classify(arguments["text"], arguments.get("with_probabilities") is True)
        case "classify_text":
            answer = {"error": "`text` must be a text that is not empty"}
        case "list_categories":
            answer = LISTING
        case name:
            answer = {"error": f"there is no tool `{name}`"}
    return {"content": [{"type": "text", "text": json.dumps(answer)}], "isError": "error" in answer}


async def rest(request: web.Request) -> web.Response:
    return web.json_response(call_tool(await request.json()))


async def json_rpc(request: web.Request) -> web.Response:
    message = await request.json()
    if "id" not in message:
        return web.Response(status=202)
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    match message.get("method"):
        case "tools/call":
            reply["result"] = call_tool(message.get("params") or {})
        case "initialize":
            server = {"name": "regex", "version": "1.0.0"}
            reply["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server}
        case method:
            reply["error"] = {"code": -32601, "message": f"there is no method `{method}`"}
    return web.json_response(reply)


def median_micros(texts: list[str]) -> float:
    times = []
    for text in texts:
        started = time.perf_counter()
        classify(text)
        times.append((time.perf_counter() - started) * 1e6)
    return statistics.median(times)


def main() -> None:
    option, value = sys.argv[1:]
    if option == "--time":
        with open(value, encoding="utf-8") as file:
            print(json.dumps({"p50": median_micros(json.load(file))}))
        return
    app = web.Application()
    app.add_routes([web.post("/mcp", json_rpc), web.post("/mcp/tools/call", rest)])
    # Not a line of log per request: nobody else here writes one.
    web.run_app(app, host="127.0.0.1", port=int(value), print=None, access_log=None)


if __name__ == "__main__":
    main()
