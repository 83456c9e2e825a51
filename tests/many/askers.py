"""People who talk with models over OpenAI's API: any instance answers any of it, with the database or without."""

import asyncio
import json
import random
import time
from collections import Counter

import wire
from broken import Broken
from instances import Instance
from proxy import Proxy
from report import Report

# Documented staleness (docs/postgres.md): decisions are visible on all instances within this time.
TOLD_WITHIN = 1
# How long to wait for a late result, to report the delay.
PATIENCE = 10
# Messages in a conversation before a new one starts.
LONGEST = 12
EMBEDDED = "The pilot came back with the second boat."
JSON = {"Content-Type": "application/json"}


class Asker:
    """Keeps a conversation, and sends all of it with every turn, as clients of OpenAI do."""

    def __init__(self, number: int, address: wire.Address, counts: Counter, chance: random.Random) -> None:
        self.number = number
        self.address = address
        self.counts = counts
        self.chance = chance
        self.turns = 0
        self.messages: list[dict] = []
        # The first result; every instance has to return the same.
        self.models: list | None = None
        self.vector: list | None = None

    async def go_on(self, over: asyncio.Event) -> None:
        while not over.is_set():
            choice = self.chance.random()
            if choice < 0.7:
                await self.talk(is_stream=choice < 0.35)
            elif choice < 0.85:
                await self.list_models()
            else:
                await self.embed()
            await asyncio.sleep(self.chance.uniform(0.1, 0.6))

    async def talk(self, is_stream: bool = False) -> str | None:
        """Says one more thing; gives the number of the decision, or none where no answer came."""
        self.turns += 1
        prompt = f"Turn {self.turns} of asker {self.number}: who wrote the ledger?"
        if len(self.messages) >= LONGEST:
            self.messages = []
        messages = [*self.messages, {"role": "user", "content": prompt}]
        body = {"model": "auto", "messages": messages, "stream": is_stream}
        reply = await self._exchange("POST", "/v1/chat/completions", body)
        if reply is None:
            return None
        text = _streamed(reply.text()) if is_stream else json.loads(reply.body)["choices"][0]["message"]["content"]
        if text != f"You said: {prompt}":
            raise Broken(f"asker {self.number} said {prompt!r}, and was answered: {reply.text()}")
        self.messages = [*messages, {"role": "assistant", "content": text}]
        self.counts["turns answered"] += 1
        return reply.headers["x-corbie-decision"]

    async def list_models(self) -> None:
        reply = await self._exchange("GET", "/v1/models")
        if reply is not None:
            listed = sorted(each["id"] for each in json.loads(reply.body)["data"])
            self.models = _same("models", self.models, listed)
            self.counts["models listed"] += 1

    async def embed(self) -> None:
        reply = await self._exchange("POST", "/v1/embeddings", {"model": "auto", "input": EMBEDDED})
        if reply is not None:
            self.vector = _same("a vector", self.vector, json.loads(reply.body)["data"][0]["embedding"])
            self.counts["texts embedded"] += 1

    async def _exchange(self, method: str, path: str, body: object = None) -> wire.Reply | None:
        """None where no answer came, since an instance was killed or frozen. A failure is never answered."""
        self.counts["calls"] += 1
        self.counts["face openai"] += 1
        try:
            reply = await wire.exchange(self.address, method, path, JSON, body)
        except wire.LOST:
            self.counts["unanswered"] += 1
            return None
        if reply.status != 200:
            raise Broken(f"{method} {path} needs no database, and is told: {reply.status} {reply.text()}")
        return reply


def _streamed(events: str) -> str:
    """The text of a stream that came to its end."""
    lines = [line[5:].strip() for line in events.splitlines() if line.startswith("data:")]
    if lines[-1:] != ["[DONE]"]:
        raise Broken(f"a stream has no end: {events}")
    choices = [choice for line in lines[:-1] for choice in json.loads(line)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def _same(what: str, before: list | None, now: list) -> list:
    if before not in (None, now):
        raise Broken(f"{what} of one instance are not those of another: {before} and {now}")
    return now


async def measure(proxy: Proxy, instances: list[Instance], report: Report) -> None:
    """A conversation goes from instance to instance, and every one tells what became of each turn."""
    asker = Asker(100, proxy.address, Counter(), random.Random(0))
    before = proxy.taken.copy()
    for turn in range(2 * len(instances)):
        decision = await asker.talk(is_stream=turn % 2 == 1)
        begun = time.monotonic()
        if decision is None:
            raise Broken("a turn is not answered, with nothing broken")
        await asyncio.gather(*(_told_by(each, decision, begun) for each in instances))
        report.took("all instances tell what became of a prompt", time.monotonic() - begun, TOLD_WITHIN)
    if idle := [each.name for each in instances if proxy.taken[each.name] == before[each.name]]:
        raise Broken(f"a conversation was to go through all instances, and never came to {', '.join(idle)}")
    times = report.times["all instances tell what became of a prompt"]
    report.phase(f"together: a conversation goes through all instances, each turn told by all after {max(times):.2f} s")


async def _told_by(instance: Instance, decision: str, begun: float) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": f"corbie://decisions/{decision}"}}
    while True:
        reply = await wire.exchange(instance.address, "POST", "/mcp", JSON, body)
        if "result" in json.loads(reply.body):
            return
        if time.monotonic() > begun + PATIENCE:
            raise Broken(f"{instance.name} does not tell of the decision {decision} after {PATIENCE} s: {reply.text()}")
        await asyncio.sleep(0.02)
