"""A streaming replica is searched; the primary is lost and comes back, and nothing acknowledged is lost with it."""

import asyncio
import json
import random
import time
from collections import Counter
from pathlib import Path

import checks
import texts
from broken import Broken
from database import Server
from instances import Instance
from mcp import Caller
from report import Report

DATABASE = "replicated"
DOCUMENTS = 12
SEARCHES = 20
# Replication lag allowed here. The guarantee is only that searches are no staler than the replica.
FOLLOWS_WITHIN = 5
BACK_WITHIN = 20
# Instances check replicas every 3 seconds, and PostgreSQL reports statistics some seconds after a transaction.
LOOKS_EVERY = 4
TAKEN_UP_WITHIN = 15
COUNTED_WITHIN = 12
# Downtime of the primary, and the number of documents accepted just before.
AWAY = 3
PROMISED = 4


async def run(options, server: Server, folder: Path, report: Report) -> None:
    chance = random.Random(options.seed)
    await server.ask(f"CREATE DATABASE {DATABASE}")
    copy = await server.replica()
    instances = [Instance(number, folder, server.url(DATABASE), [copy.url(DATABASE)]) for number in (1, 2)]
    try:
        await asyncio.gather(*(each.start() for each in instances))
        callers = [each.caller() for each in instances]
        books = Books(folder, callers, chance)
        for _ in range(DOCUMENTS):
            await books.must_add()
        await follow(server, copy, books, report, "the replica has what was added")
        report.phase(f"replica: {len(books.words)} documents are found")
        await taken_up(copy, books, report)
        await served_by(server, copy, books, report)
        await primary_lost(server, copy, books, instances, report)
        await replica_lost(copy, books, report)
        await checks.health(instances)
    finally:
        for each in instances:
            await each.kill()


class Books:
    """What was acknowledged: documents by their names, and tasks whose end is not known yet."""

    def __init__(self, folder: Path, callers: list[Caller], chance: random.Random) -> None:
        self.folder = folder
        self.callers = callers
        self.chance = chance
        self.words: dict[str, str] = {}
        self.tasks: dict[str, str] = {}
        # Sent without an acknowledgement: they may or may not exist.
        self.doubtful: set[str] = set()
        self.last = 0

    def file(self) -> dict:
        self.last += 1
        name = f"r{self.last}.txt"
        (self.folder / name).write_text(texts.text(name, 1))
        self.doubtful.add(name)
        return {"file_path": str(self.folder / name)}

    def acknowledge(self, name: str) -> None:
        self.doubtful.discard(name)
        self.words[name] = texts.word(name, 1)

    async def add(self, is_promise: bool = False):
        arguments = self.file()
        name = f"r{self.last}.txt"
        outcome = await self.chance.choice(self.callers).call("knowledge-add", {**arguments, "async": is_promise})
        if outcome.kind == "said" and outcome.said.get("success"):
            if is_promise:
                self.tasks[outcome.said["task_id"]] = name
            else:
                self.acknowledge(name)
        return outcome

    async def must_add(self, is_promise: bool = False) -> None:
        outcome = await self.add(is_promise)
        if outcome.kind != "said" or not outcome.said.get("success"):
            raise Broken(f"an add with nothing broken: {outcome}")

    async def search(self, name: str):
        """Searches for a document; gives what came, and whether it was found."""
        outcome = await self.chance.choice(self.callers).call("knowledge-search", {"query": self.words[name]})
        hits = outcome.said.get("results") or [] if outcome.kind == "said" else []
        return outcome, any(self.words[name] in hit["chunk_text"] for hit in hits)


async def follow(server: Server, copy: Server, books: Books, report: Report, what: str) -> None:
    """Waits until the replica has what was acknowledged. Every search finds it then: none is later than the replica."""
    begun = time.monotonic()
    written = await server.ask("SELECT pg_current_wal_lsn()")
    while await copy.ask(f"SELECT pg_last_wal_replay_lsn() >= '{written}'") != "t":
        if time.monotonic() > begun + FOLLOWS_WITHIN:
            raise Broken(f"{what}: not after {FOLLOWS_WITHIN} s")
        await asyncio.sleep(0.05)
    report.took(what, time.monotonic() - begun, FOLLOWS_WITHIN)
    names = list(books.words)
    for name, (outcome, is_found) in zip(names, await checks.all_of([books.search(name) for name in names])):
        if not is_found:
            raise Broken(f"{what}, and {name} is not found: {outcome}")


async def scans(server: Server) -> int:
    """How often the lists of words were read."""
    sql = "SELECT coalesce(sum(idx_scan + seq_scan), 0) FROM pg_stat_user_tables WHERE relname LIKE 'postings%'"
    return int(await server.ask(sql, DATABASE))


async def all_scans(server: Server) -> int:
    """The same, with none that is told later: a connection that has ended has told all."""
    await server.cut_all(DATABASE, patience=5)
    return await scans(server)


async def taken_up(copy: Server, books: Books, report: Report) -> None:
    """Waits until the replica is searched: every few seconds instances look which ones are fit."""
    begun, before = time.monotonic(), await scans(copy)
    while await scans(copy) == before:
        if time.monotonic() > begun + TAKEN_UP_WITHIN:
            raise Broken(f"a replica that follows is not searched after {TAKEN_UP_WITHIN} s")
        await asyncio.gather(*(each.must("knowledge-search", {"query": "anything"}) for each in books.callers))
        await asyncio.sleep(0.2)
    # Both instances poll on their own.
    await asyncio.sleep(LOOKS_EVERY)
    report.took("a replica that follows is searched", time.monotonic() - begun, TAKEN_UP_WITHIN + LOOKS_EVERY)


async def served_by(server: Server, copy: Server, books: Books, report: Report) -> None:
    """Searches are read from the replica: its counts grow, and those of the primary do not."""
    before, before_there = await all_scans(server), await scans(copy)
    for _ in range(SEARCHES):
        outcome, is_found = await books.search(books.chance.choice(list(books.words)))
        if not is_found:
            raise Broken(f"a search with nothing broken: {outcome}")
    here = await all_scans(server) - before
    until = time.monotonic() + COUNTED_WITHIN
    while (there := await scans(copy) - before_there) < SEARCHES and time.monotonic() < until:
        await asyncio.sleep(0.2)
    report.counts["reads of words by searches, on the replica"] += there
    report.counts["reads of words by searches, on the primary"] += here
    if there < SEARCHES or here > 0:
        raise Broken(f"{SEARCHES} searches, and the replica read words {there} times, the primary {here} times")
    report.phase(f"replica: {SEARCHES} searches read words {there} times there, {here} times on the primary")


async def primary_lost(server: Server, copy: Server, books: Books, instances: list[Instance], report: Report) -> None:
    # Some tasks are accepted just before the outage: they complete once the primary returns.
    for _ in range(PROMISED):
        await books.must_add(is_promise=True)
    await server.stop()
    lost = time.monotonic()
    told: Counter = Counter()
    said: dict[str, str] = {}
    while time.monotonic() < lost + AWAY:
        await _searches_go_on(books, told)
        await _adds_say_why(books, report, told, said)
        await _others_go_on(books)
        await asyncio.sleep(0.1)
    health = json.loads((await instances[0].caller().get("/health")).text())
    if health.get("status") != "degraded":
        raise Broken(f"the primary is away, and /health says: {health}")
    ready = await instances[0].caller().get("/ready")
    if ready.status != 200:
        raise Broken(f"the primary is away, and /ready says: {ready.status} {ready.text()}")
    report.counts.update({f"primary away: {what}": count for what, count in told.items()})
    report.phase(f"replica: primary away for {AWAY} s: {dict(told)}")
    for what, text in said.items():
        report.phase(f"replica: {what}: {text}")
    await server.start()
    await _back(server, copy, books, report)


async def _searches_go_on(books: Books, told: Counter) -> None:
    outcome, is_found = await books.search(books.chance.choice(list(books.words)))
    if not is_found:
        raise Broken(f"the primary is away and its replica is not, and a search is answered: {outcome}")
    told["searches answered"] += 1


async def _adds_say_why(books: Books, report: Report, told: Counter, said: dict) -> None:
    begun = time.monotonic()
    outcome = await books.add(is_promise=told["adds that say why not"] % 2 == 1)
    if outcome.kind != "lost" or not outcome.why.startswith("storage_unavailable"):
        raise Broken(f"the primary is away, and an add is told: {outcome}")
    report.took("an add says why not", time.monotonic() - begun)
    told["adds that say why not"] += 1
    said.setdefault("an add is told", outcome.why)


async def _others_go_on(books: Books) -> None:
    for caller in books.callers:
        outcome = await caller.call("classify_text", {"text": "What is the sum of two and two?"})
        if outcome.kind != "said":
            raise Broken(f"the primary is away, and classification is told: {outcome}")


async def _back(server: Server, copy: Server, books: Books, report: Report) -> None:
    """All works again by itself, at every instance, and nothing acknowledged is lost."""
    back = time.monotonic()
    for caller in books.callers:
        while True:
            arguments = books.file()
            outcome = await caller.call("knowledge-add", {**arguments, "async": False})
            if outcome.kind == "said":
                books.acknowledge(f"r{books.last}.txt")
                break
            if time.monotonic() > back + BACK_WITHIN:
                raise Broken(f"the primary is back for {BACK_WITHIN} s, and an add is told: {outcome.why}")
            await asyncio.sleep(0.1)
    report.took("adds work once the primary is back", time.monotonic() - back, BACK_WITHIN)
    for task, name in list(books.tasks.items()):
        said = await checks.end_of(books.callers[0], task, back + BACK_WITHIN)
        if said["status"] != "completed":
            raise Broken(f"{name} was promised before the primary was lost, and: {said}")
        books.acknowledge(name)
    while (health := json.loads((await books.callers[0].get("/health")).text())).get("status") != "ok":
        if time.monotonic() > back + BACK_WITHIN:
            raise Broken(f"the primary is back for {BACK_WITHIN} s, and /health says: {health}")
        await asyncio.sleep(0.2)
    report.took("all is well once the primary is back", time.monotonic() - back, BACK_WITHIN)
    for caller in books.callers:
        listed = Counter(each["filename"] for each in await checks.listing(caller, "default"))
        if missing := set(books.words) - set(listed):
            raise Broken(f"acknowledged, and lost with the primary: {sorted(missing)}")
        if double := [name for name, count in listed.items() if count > 1]:
            raise Broken(f"there more than once: {double}")
        if strangers := set(listed) - set(books.words) - books.doubtful:
            raise Broken(f"nobody added: {sorted(strangers)}")
    await follow(server, copy, books, report, "the replica follows again")
    seconds = time.monotonic() - back
    report.phase(f"replica: primary back, all well after {seconds:.1f} s; {PROMISED} promised tasks done, nothing lost")


async def replica_lost(copy: Server, books: Books, report: Report) -> None:
    """Without the replica the primary is searched, also in the place of one that was lost in the middle of a search."""
    searching = asyncio.create_task(checks.all_of([books.search(name) for name in books.words]))
    await asyncio.sleep(0.02)
    await copy.stop()
    answered = list(zip(books.words, await searching))
    for name in books.words:
        answered.append((name, await books.search(name)))
    for name, (outcome, is_found) in answered:
        if not is_found:
            raise Broken(f"the replica is away, and {name} is not found: {outcome}")
    report.counts["replica away: searches answered"] += len(answered)
    report.phase(f"replica: replica away, all of {len(answered)} searches answered by the primary")
