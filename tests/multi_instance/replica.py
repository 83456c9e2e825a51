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
