"""Client of the OpenAI-compatible API: every instance serves every request, with or without the database."""

import asyncio
import json
import random
import time
from collections import Counter

import http_client
from instances import Instance
from invariant_violation import InvariantViolation
from proxy import Proxy
from report import Report

# Documented staleness (docs/postgres.md): decisions are visible on all instances within this time.
MAX_STALENESS = 1
# How long to wait for a late result, to report the delay.
MAX_WAIT = 10
# Messages in a conversation before a new one starts.
MAX_MESSAGES = 12
EMBEDDING_INPUT = "The pilot came back with the second boat."
JSON = {"Content-Type": "application/json"}
PROPAGATION = "all instances show a decision"


class ChatClient:
    """Has a conversation and sends all of it with every turn, as clients of OpenAI do."""

    def __init__(self, number: int, address: http_client.Address, counts: Counter, rng: random.Random) -> None:
        self.number = number
        self.address = address
        self.counts = counts
        self.rng = rng
        self.turns = 0
        self.messages: list[dict] = []
        # The first result; every instance has to return the same.
        self.models: list | None = None
        self.vector: list | None = None

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            choice = self.rng.random()
            if choice < 0.7:
                await self.chat(is_stream=choice < 0.35)
            elif choice < 0.85:
                await self.list_models()
            else:
                await self.embed()
            await asyncio.sleep(self.rng.uniform(0.1, 0.6))

    async def chat(self, is_stream: bool = False) -> str | None:
        """Sends the next turn; returns the decision id, or None without a response."""
        self.turns += 1
        prompt = f"Turn {self.turns} of client {self.number}: who wrote the ledger?"
        if len(self.messages) >= MAX_MESSAGES:
            self.messages = []
        messages = [*self.messages, {"role": "user", "content": prompt}]
        body = {"model": "auto", "messages": messages, "stream": is_stream}
        response = await self._request("POST", "/v1/chat/completions", body)
        if response is None:
            return None
        if is_stream:
            text = _stream_text(response.text())
        else:
            text = json.loads(response.body)["choices"][0]["message"]["content"]
        if text != f"You said: {prompt}":
            raise InvariantViolation(f"client {self.number} sent {prompt!r} and received: {response.text()}")
        self.messages = [*messages, {"role": "assistant", "content": text}]
        self.counts["chat completions"] += 1
        return response.headers["x-corbie-decision"]

    async def list_models(self) -> None:
        response = await self._request("GET", "/v1/models")
        if response is not None:
            models = sorted(each["id"] for each in json.loads(response.body)["data"])
            self.models = _check_same("model lists", self.models, models)
            self.counts["model lists"] += 1

    async def embed(self) -> None:
        response = await self._request("POST", "/v1/embeddings", {"model": "auto", "input": EMBEDDING_INPUT})
        if response is not None:
            vector = json.loads(response.body)["data"][0]["embedding"]
            self.vector = _check_same("embeddings", self.vector, vector)
            self.counts["embeddings"] += 1

    async def _request(self, method: str, path: str, body: object = None) -> http_client.HttpResponse | None:
        """Returns None without a response, because an instance was killed or paused. An error response is a failure."""
        self.counts["calls"] += 1
        self.counts["protocol openai"] += 1
        try:
            response = await http_client.request(self.address, method, path, JSON, body)
        except http_client.CONNECTION_ERRORS:
            self.counts["unanswered"] += 1
            return None
        if response.status != 200:
            raise InvariantViolation(
                f"{method} {path} needs no database, but failed: {response.status} {response.text()}"
            )
        return response


def _stream_text(events: str) -> str:
    """The text of a complete stream."""
    lines = [line[5:].strip() for line in events.splitlines() if line.startswith("data:")]
    if lines[-1:] != ["[DONE]"]:
        raise InvariantViolation(f"a stream is truncated: {events}")
    choices = [choice for line in lines[:-1] for choice in json.loads(line)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def _check_same(what: str, expected: list | None, actual: list) -> list:
    if expected not in (None, actual):
        raise InvariantViolation(f"{what} differ between instances: {expected} and {actual}")
    return actual


async def check_conversation(proxy: Proxy, instances: list[Instance], report: Report) -> None:
    """A conversation is distributed over all instances, and every instance shows the decision of each turn."""
    client = ChatClient(100, proxy.address, Counter(), random.Random(0))
    accepted_before = proxy.accepted.copy()
    for turn in range(2 * len(instances)):
        decision = await client.chat(is_stream=turn % 2 == 1)
        started = time.monotonic()
        if decision is None:
            raise InvariantViolation("no response to a chat completion although no fault is active")
        await asyncio.gather(*(_wait_for_decision(each, decision, started) for each in instances))
        report.record_duration(PROPAGATION, time.monotonic() - started, MAX_STALENESS)
    if unused := [each.name for each in instances if proxy.accepted[each.name] == accepted_before[each.name]]:
        raise InvariantViolation(f"the conversation did not reach {', '.join(unused)}")
    seconds = max(report.durations[PROPAGATION])
    report.phase(f"workload: a conversation uses all instances; decisions propagate within {seconds:.2f} s")


async def _wait_for_decision(instance: Instance, decision: str, started: float) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": f"corbie://decisions/{decision}"}}
    while True:
        response = await http_client.request(instance.address, "POST", "/mcp", JSON, body)
        if "result" in json.loads(response.body):
            return
        if time.monotonic() > started + MAX_WAIT:
            raise InvariantViolation(
                f"{instance.name} does not show decision {decision} after {MAX_WAIT} s: {response.text()}"
            )
        await asyncio.sleep(0.02)
