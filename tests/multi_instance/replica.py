"""Scenario `replica`: searches use a streaming replica; the primary stops and restarts without losing acknowledged
writes."""

import asyncio
import json
import random
import time
from collections import Counter
from pathlib import Path

import consistency
import document_text
from instances import Instance
from invariant_violation import InvariantViolation
from mcp_client import McpClient
from postgres_server import PostgresServer
from report import Report

DATABASE = "replicated"
DOCUMENTS = 12
SEARCHES = 20
# Replication lag allowed here. The guarantee is only that searches are no staler than the replica.
MAX_REPLICATION_LAG = 5
MAX_RECOVERY = 20
# Instances check replicas every 3 seconds, and PostgreSQL reports statistics some seconds after a transaction.
REPLICA_CHECK_INTERVAL = 4
MAX_REPLICA_DETECTION = 15
MAX_STATISTICS_DELAY = 12
# Downtime of the primary, and the number of tasks accepted just before.
OUTAGE_SECONDS = 3
ACCEPTED_TASKS = 4


async def run(options, primary: PostgresServer, folder: Path, report: Report) -> None:
    rng = random.Random(options.seed)
    await primary.query(f"CREATE DATABASE {DATABASE}")
    replica = await primary.create_replica()
    instances = [Instance(number, folder, primary.url(DATABASE), [replica.url(DATABASE)]) for number in (1, 2)]
    try:
        await asyncio.gather(*(each.start() for each in instances))
        clients = [each.mcp_client() for each in instances]
        corpus = Corpus(folder, clients, rng)
        for _ in range(DOCUMENTS):
            await corpus.add_checked()
        await wait_for_replication(primary, replica, corpus, report, "replication of added documents")
        report.phase(f"replica: {len(corpus.words)} documents are found")
        await wait_for_replica_reads(replica, corpus, report)
        await check_replica_reads(primary, replica, corpus, report)
        await check_primary_outage(primary, replica, corpus, instances, report)
        await check_replica_outage(replica, corpus, report)
        await consistency.check_health(instances)
    finally:
        for each in instances:
            await each.kill()


class Corpus:
    """The acknowledged documents with their words, and accepted tasks whose end is unknown."""

    def __init__(self, folder: Path, clients: list[McpClient], rng: random.Random) -> None:
        self.folder = folder
        self.clients = clients
        self.rng = rng
        self.words: dict[str, str] = {}
        self.tasks: dict[str, str] = {}
        # Sent without an acknowledgement: they may or may not exist.
        self.in_doubt: set[str] = set()
        self.last_number = 0

    def new_file(self) -> str:
        """Writes the next file; returns its name."""
        self.last_number += 1
        name = f"r{self.last_number}.txt"
        (self.folder / name).write_text(document_text.document_text(name, 1))
        self.in_doubt.add(name)
        return name

    def record_acknowledged(self, name: str) -> None:
        self.in_doubt.discard(name)
        self.words[name] = document_text.unique_word(name, 1)

    async def add(self, client: McpClient | None = None, is_async: bool = False):
        name = self.new_file()
        client = client or self.rng.choice(self.clients)
        outcome = await client.call("knowledge-add", {"file_path": str(self.folder / name), "async": is_async})
        if outcome.kind == "answered" and outcome.result.get("success"):
            if is_async:
                self.tasks[outcome.result["task_id"]] = name
            else:
                self.record_acknowledged(name)
        return outcome

    async def add_checked(self, is_async: bool = False) -> None:
        outcome = await self.add(is_async=is_async)
        if outcome.kind != "answered" or not outcome.result.get("success"):
            raise InvariantViolation(f"an add without a fault: {outcome}")

    async def search(self, name: str):
        """Searches for a document; returns the outcome, and whether the document was found."""
        outcome = await self.rng.choice(self.clients).call("knowledge-search", {"query": self.words[name]})
        hits = outcome.result.get("results") or [] if outcome.kind == "answered" else []
        return outcome, any(self.words[name] in hit["chunk_text"] for hit in hits)

    async def search_any(self):
        return await self.search(self.rng.choice(list(self.words)))


async def wait_for_replication(
    primary: PostgresServer, replica: PostgresServer, corpus: Corpus, report: Report, what: str
) -> None:
    """Waits until the replica has all acknowledged documents. Every search then finds them: no search is staler than
    the replica."""
    started = time.monotonic()
    written = await primary.query("SELECT pg_current_wal_lsn()")
    while await replica.query(f"SELECT pg_last_wal_replay_lsn() >= '{written}'") != "t":
        if time.monotonic() > started + MAX_REPLICATION_LAG:
            raise InvariantViolation(f"{what}: not complete after {MAX_REPLICATION_LAG} s")
        await asyncio.sleep(0.05)
    report.record_duration(what, time.monotonic() - started, MAX_REPLICATION_LAG)
    names = list(corpus.words)
    searches = await consistency.gather_bounded([corpus.search(name) for name in names])
    for name, (outcome, is_found) in zip(names, searches):
        if not is_found:
            raise InvariantViolation(f"{what}: complete, but {name} is not found: {outcome}")


async def posting_reads(server: PostgresServer) -> int:
    """How often posting lists were read, as reported so far."""
    sql = "SELECT coalesce(sum(idx_scan + seq_scan), 0) FROM pg_stat_user_tables WHERE relname LIKE 'postings%'"
    return int(await server.query(sql, DATABASE))


async def all_posting_reads(server: PostgresServer) -> int:
    """The same, complete: a connection reports its statistics at the latest when it ends."""
    await server.terminate_all(DATABASE, timeout=5)
    return await posting_reads(server)


async def wait_for_replica_reads(replica: PostgresServer, corpus: Corpus, report: Report) -> None:
    """Waits until searches use the replica: instances check every few seconds which replicas are usable."""
    started, before = time.monotonic(), await posting_reads(replica)
    while await posting_reads(replica) == before:
        if time.monotonic() > started + MAX_REPLICA_DETECTION:
            raise InvariantViolation(f"a usable replica is not searched after {MAX_REPLICA_DETECTION} s")
        searches = (each.call_checked("knowledge-search", {"query": "anything"}) for each in corpus.clients)
        await asyncio.gather(*searches)
        await asyncio.sleep(0.2)
    # Each instance checks independently.
    await asyncio.sleep(REPLICA_CHECK_INTERVAL)
    elapsed = time.monotonic() - started
    report.record_duration("detection of a usable replica", elapsed, MAX_REPLICA_DETECTION + REPLICA_CHECK_INTERVAL)


async def check_replica_reads(
    primary: PostgresServer, replica: PostgresServer, corpus: Corpus, report: Report
) -> None:
    """Searches read from the replica: its statistics grow, and those of the primary do not."""
    primary_before, replica_before = await all_posting_reads(primary), await posting_reads(replica)
    for _ in range(SEARCHES):
        outcome, is_found = await corpus.search_any()
        if not is_found:
            raise InvariantViolation(f"a search without a fault: {outcome}")
    on_primary = await all_posting_reads(primary) - primary_before
    deadline = time.monotonic() + MAX_STATISTICS_DELAY
    while (on_replica := await posting_reads(replica) - replica_before) < SEARCHES and time.monotonic() < deadline:
        await asyncio.sleep(0.2)
    report.counts["posting lists read by searches on the replica"] += on_replica
    report.counts["posting lists read by searches on the primary"] += on_primary
    if on_replica < SEARCHES or on_primary > 0:
        raise InvariantViolation(
            f"{SEARCHES} searches read posting lists {on_replica} times on the replica, {on_primary} times on the primary"
        )
    report.phase(f"replica: {SEARCHES} searches read from the replica, none from the primary")


async def check_primary_outage(
    primary: PostgresServer, replica: PostgresServer, corpus: Corpus, instances: list[Instance], report: Report
) -> None:
    # Tasks accepted just before the outage complete once the primary is available again.
    for _ in range(ACCEPTED_TASKS):
        await corpus.add_checked(is_async=True)
    await primary.stop()
    stopped = time.monotonic()
    counts: Counter = Counter()
    while time.monotonic() < stopped + OUTAGE_SECONDS:
        await _check_search_during_outage(corpus, counts)
        await _check_add_during_outage(corpus, report, counts)
        await _check_classification_during_outage(corpus)
        await asyncio.sleep(0.1)
    health = json.loads((await instances[0].mcp_client().get("/health")).text())
    if health.get("status") != "degraded":
        raise InvariantViolation(f"/health while the primary is unavailable: {health}")
    ready = await instances[0].mcp_client().get("/ready")
    if ready.status != 200:
        raise InvariantViolation(f"/ready while the primary is unavailable: {ready.status} {ready.text()}")
    report.counts.update({f"primary unavailable: {what}": count for what, count in counts.items()})
    report.phase(f"replica: primary unavailable for {OUTAGE_SECONDS} s: {dict(counts)}")
    await primary.start()
    await _check_recovery(primary, replica, corpus, report)


async def _check_search_during_outage(corpus: Corpus, counts: Counter) -> None:
    outcome, is_found = await corpus.search_any()
    if not is_found:
        raise InvariantViolation(f"a search while only the primary is unavailable: {outcome}")
    counts["searches answered"] += 1


async def _check_add_during_outage(corpus: Corpus, report: Report, counts: Counter) -> None:
    started = time.monotonic()
    outcome = await corpus.add(is_async=counts["adds refused"] % 2 == 1)
    if outcome.kind != "lost" or not outcome.reason.startswith("storage_unavailable"):
        raise InvariantViolation(f"an add while the primary is unavailable: {outcome}")
    report.record_duration("error of an add while the primary is unavailable", time.monotonic() - started)
    counts["adds refused"] += 1


async def _check_classification_during_outage(corpus: Corpus) -> None:
    for client in corpus.clients:
        outcome = await client.call("classify_text", {"text": "What is the sum of two and two?"})
        if outcome.kind != "answered":
            raise InvariantViolation(f"a classification while the primary is unavailable: {outcome}")


async def _check_recovery(primary: PostgresServer, replica: PostgresServer, corpus: Corpus, report: Report) -> None:
    """Everything works again on every instance without intervention, and nothing acknowledged is lost."""
    started = time.monotonic()
    deadline = started + MAX_RECOVERY
    for client in corpus.clients:
        while (outcome := await corpus.add(client)).kind != "answered":
            if time.monotonic() > deadline:
                raise InvariantViolation(f"an add {MAX_RECOVERY} s after the primary is available: {outcome.reason}")
            await asyncio.sleep(0.1)
    report.record_duration("adds succeed after the outage", time.monotonic() - started, MAX_RECOVERY)
    for task, name in list(corpus.tasks.items()):
        status = await consistency.wait_for_task(corpus.clients[0], task, deadline)
        if status["status"] != "completed":
            raise InvariantViolation(f"{name} was accepted before the outage: {status}")
        corpus.record_acknowledged(name)
    while (health := json.loads((await corpus.clients[0].get("/health")).text())).get("status") != "ok":
        if time.monotonic() > deadline:
            raise InvariantViolation(f"/health {MAX_RECOVERY} s after the primary is available: {health}")
        await asyncio.sleep(0.2)
    report.record_duration("health is ok after the outage", time.monotonic() - started, MAX_RECOVERY)
    for client in corpus.clients:
        await _check_documents(client, corpus)
    await wait_for_replication(primary, replica, corpus, report, "replication after the outage")
    report.phase(
        f"replica: recovered {time.monotonic() - started:.1f} s after the primary; {ACCEPTED_TASKS} accepted tasks "
        "completed, nothing lost"
    )


async def _check_documents(client: McpClient, corpus: Corpus) -> None:
    listed = Counter(each["filename"] for each in await consistency.list_documents(client, "default"))
    if missing := set(corpus.words) - set(listed):
        raise InvariantViolation(f"acknowledged and lost in the outage: {sorted(missing)}")
    if duplicates := [name for name, count in listed.items() if count > 1]:
        raise InvariantViolation(f"listed more than once: {duplicates}")
    if unknown := set(listed) - set(corpus.words) - corpus.in_doubt:
        raise InvariantViolation(f"listed and never added: {sorted(unknown)}")


async def check_replica_outage(replica: PostgresServer, corpus: Corpus, report: Report) -> None:
    """Without the replica searches use the primary, including a search that was reading from the replica."""
    searches = asyncio.create_task(consistency.gather_bounded([corpus.search(name) for name in corpus.words]))
    await asyncio.sleep(0.02)
    await replica.stop()
    answered = list(zip(corpus.words, await searches))
    for name in corpus.words:
        answered.append((name, await corpus.search(name)))
    for name, (outcome, is_found) in answered:
        if not is_found:
            raise InvariantViolation(f"{name} is not found while the replica is unavailable: {outcome}")
    report.counts["replica unavailable: searches answered"] += len(answered)
    report.phase(f"replica: replica unavailable, the primary answers all {len(answered)} searches")
