"""Consistency checks after the last fault: all instances return the same state, and it matches the ledgers."""

import asyncio
import time
from collections import defaultdict

import document_text
import http_client
from document_client import FINAL_STATES, DocumentClient, check_found, check_not_found, check_text
from instances import Instance
from invariant_violation import InvariantViolation
from ledger import Ledger
from mcp_client import McpClient

MAX_CONCURRENT_REQUESTS = 8
TASK_TIMEOUT = 30


async def gather_bounded(awaitables: list) -> list:
    """Awaits a bounded number concurrently; the first failure cancels the others."""
    semaphore = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)

    async def run(awaitable):
        async with semaphore:
            return await awaitable

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(awaitable)) for awaitable in awaitables]
    return [task.result() for task in tasks]


async def wait_until_idle(instances: list[Instance]) -> float:
    """Waits until no task is active and no request is in flight; returns the duration."""
    started = time.monotonic()
    while True:
        reasons = await asyncio.gather(*(_busy_reason(each.mcp_client()) for each in instances))
        busy = [reason for reason in reasons if reason]
        if not busy:
            return time.monotonic() - started
        if time.monotonic() > started + TASK_TIMEOUT:
            raise InvariantViolation(f"not idle {TASK_TIMEOUT} s after the last fault: {busy}")
        await asyncio.sleep(0.1)


async def wait_for_database(instances: list[Instance]) -> None:
    """Waits until every instance reaches the database."""
    deadline = time.monotonic() + TASK_TIMEOUT
    for each in instances:
        while (outcome := await each.mcp_client().call("knowledge-tasks", {"active_only": True})).kind != "answered":
            if time.monotonic() > deadline:
                raise InvariantViolation(f"{each.name} does not reach the available database: {outcome.reason}")
            await asyncio.sleep(0.1)


async def wait_for_task(client: McpClient, task: str, deadline: float) -> dict:
    """Waits until a task ends or the deadline passes; returns the last status."""
    while True:
        status = await client.call_checked("knowledge-task-status", {"task_id": task})
        if status.get("status") in FINAL_STATES or time.monotonic() > deadline:
            return status
        await asyncio.sleep(0.1)


async def _busy_reason(client: McpClient) -> str | None:
    """Why an instance is busy; None if it is idle."""
    tasks = await client.call("knowledge-tasks", {"active_only": True})
    if tasks.kind != "answered" or tasks.result.get("tasks"):
        return f"{client.address[1]}: {tasks}"
    inspection = await client.call("inspect_server", {})
    # This request itself counts as one in flight.
    in_flight = (inspection.result.get("queues") or {}).get("requests_in_flight") or 0
    return f"{client.address[1]}: {in_flight} requests in flight" if in_flight > 1 else None


async def check_tasks_ended(clients: list[DocumentClient], instances: list[Instance]) -> int:
    """Every accepted task has ended, with the same status on every instance."""
    async def check_task(client: DocumentClient, ledger: Ledger, entry) -> None:
        task = entry.task
        statuses = [
            await each.mcp_client().call_checked("knowledge-task-status", {"task_id": task}) for each in instances
        ]
        if len({each.get("status") for each in statuses}) > 1:
            raise InvariantViolation(f"instances differ about task {task}: {statuses}")
        if not client.record_task_end(ledger, entry, statuses[0]):
            raise InvariantViolation(f"task {task} of {entry.name} has not ended: {statuses[0]}")

    accepted = [
        (client, ledger, entry) for client in clients for ledger in client.ledgers
        for entry in ledger.entries.values() if entry.task is not None
    ]
    await gather_bounded([check_task(*each) for each in accepted])
    return len(accepted)


async def list_documents(client: McpClient, base: str) -> list[dict]:
    documents: list[dict] = []
    while True:
        arguments = {"limit": 1000, "offset": len(documents), "knowledge_base": base, "sort_by": "filename"}
        page = await client.call_checked("knowledge-show", arguments)
        documents += page.get("documents") or []
        if not page.get("documents") or len(documents) >= page["total_count"]:
            return documents


async def query_all(what: str, query, instances: list[Instance]) -> object:
    """Sends a query to every instance and returns the common result: acknowledged writes are visible everywhere."""
    results = await asyncio.gather(*(query(each.mcp_client()) for each in instances))
    if any(each != results[0] for each in results):
        raise InvariantViolation(f"instances differ about {what}: {results}")
    return results[0]


async def check_documents(clients: list[DocumentClient], instances: list[Instance], report) -> None:
    """Every document has a possible version and exists exactly once on every instance; no other documents exist."""
    ledgers_by_base: dict[str, list[Ledger]] = defaultdict(list)
    for client in clients:
        for ledger in client.ledgers:
            ledgers_by_base[ledger.base].append(ledger)
    for base, ledgers in ledgers_by_base.items():
        documents = await query_all(f"the list of {base}", lambda client: list_documents(client, base), instances)
        existing = [each for each in documents if each["processing_status"] != "failed"]
        by_name = defaultdict(list)
        for each in existing:
            by_name[each["filename"]].append(each)
        entries = {name: (ledger, entry) for ledger in ledgers for name, entry in ledger.entries.items()}
        for name, listed in by_name.items():
            if name not in entries:
                raise InvariantViolation(f"{base} has a document that no client added: {listed}")
            if len(listed) > 1:
                raise InvariantViolation(f"{name} is in {base} {len(listed)} times: {listed}")
            if listed[0]["processing_status"] != "completed":
                raise InvariantViolation(f"{name} is incomplete although all tasks have ended: {listed}")
        removed = set().union(*(ledger.removed_ids for ledger in ledgers))
        if reappeared := [each for each in documents if each["id"] in removed]:
            raise InvariantViolation(f"removed documents reappeared in {base}: {reappeared}")
        await gather_bounded([
            _check_document(ledger, entry, by_name.get(name), instances)
            for name, (ledger, entry) in entries.items()
        ])
        report.counts["documents compared"] += len(existing) * len(instances)


async def _check_document(ledger: Ledger, entry, listed: list[dict] | None, instances: list[Instance]) -> None:
    versions = entry.possible_versions
    if listed is None:
        if None not in versions:
            raise InvariantViolation(f"{entry.name} is lost; possible versions in {ledger.base}: {versions}")
        ledger.record_acknowledged(entry, None, None)
        return
    if versions == [None]:
        raise InvariantViolation(f"{entry.name} was removed from {ledger.base}, but is listed: {listed}")
    document = listed[0]["id"]
    arguments = {"document_id": document, "max_characters": 100_000, "knowledge_base": ledger.base}
    results = [await each.mcp_client().call_checked("knowledge-get", arguments) for each in instances]
    text = ((results[0].get("pages") or [{}])[0].get("text") or "").split()
    matching = [
        each for each in versions
        if each is not None and document_text.document_text(entry.name, each).split() == text
    ]
    if not matching:
        actual = " ".join(text) or results[0]
        raise InvariantViolation(f"{entry.name} has possible versions {versions} in {ledger.base}, but is: {actual}")
    for each in results:
        check_text(entry, matching[0], each)
    ledger.record_acknowledged(entry, matching[0], document)


async def check_searches(
    clients: list[DocumentClient], instances: list[Instance], rng, report, max_samples: int
) -> None:
    """Every instance finds existing documents, with the same results, and no instance finds dead versions."""
    existing = [(ledger, entry) for client in clients for ledger in client.ledgers for entry in ledger.existing()]
    dead = [(ledger, word) for client in clients for ledger in client.ledgers for word in ledger.dead_words]

    async def search(client: McpClient, base: str, word: str) -> dict:
        result = await client.call_checked("knowledge-search", {"query": word, "top_k": 5, "knowledge_base": base})
        # The search time differs between instances.
        return {key: value for key, value in result.items() if key != "search_time_ms"}

    async def check_existing(ledger: Ledger, entry) -> None:
        word = entry.unique_word()
        result = await query_all(word, lambda client: search(client, ledger.base, word), instances)
        check_found(entry, ledger.base, result)

    async def check_dead(ledger: Ledger, word: str) -> None:
        for each in instances:
            check_not_found(word, ledger.base, await search(each.mcp_client(), ledger.base, word))

    await gather_bounded([check_existing(*each) for each in rng.sample(existing, min(max_samples, len(existing)))])
    await gather_bounded([check_dead(*each) for each in rng.sample(dead, min(max_samples, len(dead)))])
    report.counts["searches compared"] += min(max_samples, len(existing)) + min(max_samples, len(dead))


async def check_health(instances: list[Instance]) -> None:
    for each in instances:
        each.check_log()
        try:
            reply = await each.mcp_client().get("/ready")
        except http_client.CONNECTION_ERRORS as error:
            raise InvariantViolation(f"{each.name} does not answer /ready: {error!r}") from error
        if reply.status != 200:
            raise InvariantViolation(f"{each.name} is not ready: {reply.status} {reply.text()}")
