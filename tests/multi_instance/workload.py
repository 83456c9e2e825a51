"""Scenario `workload`: several instances behind a proxy, many clients, and faults. No data is lost or duplicated, and
all instances return the same."""

import asyncio
import random
import time
from pathlib import Path

import chat_client
import consistency
import document_text
import minimum_activity
import taxonomy_client
from document_client import DocumentClient
from faults import FaultInjector
from instances import Instance
from invariant_violation import InvariantViolation
from mcp_client import McpClient
from notification_latency import NotificationLatency
from postgres_server import PostgresServer
from proxy import Proxy
from report import Report

DATABASE = "workload"
ORPHANS = "orphans"
# Documented limits (docs/postgres.md). The database was unavailable just before: no instance is declared dead in the 10
# seconds after that, and then instances check every 5 seconds.
MAX_TAKEOVER_DELAY = 15
# There is no guarantee for the duration of the work itself: this is slack for a busy machine.
MAX_COMPLETION_DELAY = 30
# Number of paragraphs that occupy an instance until it is killed.
LONG_DOCUMENT_PARAGRAPHS = 40
TAXONOMY_CLIENTS = 3
CHAT_CLIENTS = 3
# Number of words to search for at the end, on every instance.
MAX_SEARCHES = 30
# Share of the time for faults; the rest is for checks.
FAULT_SHARE = 0.5
TAKEOVER = "takeover of tasks of a dead instance"
COMPLETION = "completion of tasks of a dead instance"


async def run(options, server: PostgresServer, folder: Path, report: Report) -> None:
    rng = random.Random(options.seed)
    await server.query(f"CREATE DATABASE {DATABASE}")
    files = folder / "files"
    files.mkdir()
    instances = [Instance(number, folder, server.url(DATABASE)) for number in range(1, options.instances + 1)]
    proxy = Proxy(instances)
    try:
        # Concurrently: they create the tables together.
        await asyncio.gather(*(each.start() for each in instances))
        await proxy.start()
        report.phase(f"workload: {len(instances)} instances started")

        def mcp_client() -> McpClient:
            return McpClient(proxy.address, report.counts)

        def client_rng(kind: str, number: int) -> random.Random:
            return random.Random(f"{options.seed} {kind}{number}")

        document_clients = [
            DocumentClient(number, mcp_client(), files, client_rng("", number)) for number in range(options.clients)
        ]
        taxonomy_clients = [
            taxonomy_client.TaxonomyClient(number, mcp_client(), client_rng("e", number))
            for number in range(TAXONOMY_CLIENTS)
        ]
        chat_clients = [
            chat_client.ChatClient(number, proxy.address, report.counts, client_rng("a", number))
            for number in range(CHAT_CLIENTS)
        ]
        clients = document_clients + taxonomy_clients + chat_clients
        await run_with_faults(options, clients, instances, server, rng, report)
        # Immediately: leftovers of the faults are adopted in the same time.
        await check_takeover(instances, server, files, rng, report)
        await check_tasks(document_clients, instances, report)
        # Notifications are measured in between: before each, no document may have changed for a while.
        notifications = NotificationLatency(instances)
        await notifications.prepare(files)
        await consistency.check_documents(document_clients, instances, report)
        report.phase(f"workload: {report.counts['documents compared']} documents exist once, with their text")
        await notifications.measure(report)
        await consistency.check_searches(document_clients, instances, rng, report, MAX_SEARCHES)
        report.phase(f"workload: {report.counts['searches compared']} searches have the same results on all instances")
        await notifications.measure(report)
        await taxonomy_client.check_propagation(taxonomy_clients, instances, report)
        await check_sessions(instances, report)
        await chat_client.check_conversation(proxy, instances, report)
        await notifications.measure_remaining(report)
        await consistency.check_health(instances)
        minimum_activity.check(report)
    finally:
        proxy.stop()
        for each in instances:
            await each.kill()


async def run_with_faults(options, clients, instances, server, rng, report) -> None:
    faults = FaultInjector(instances, server, DATABASE, rng, report)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.run(stop))
        deadline = time.monotonic() + options.seconds * FAULT_SHARE
        group.create_task(faults.run(deadline, lambda: not minimum_activity.shortfalls(report), stop))
        group.create_task(taxonomy_client.check_agreement(instances, stop, report))
    injected = ", ".join(f"{count} {kind}" for kind, count in sorted(report.faults.items()))
    report.phase(f"workload: {len(clients)} clients, {report.counts['calls']} calls, faults: {injected}")


async def check_tasks(clients, instances, report) -> None:
    seconds = await consistency.wait_until_idle(instances)
    seconds += report.durations[COMPLETION][-1]
    report.record_duration("end of all tasks after the loss of an instance", seconds, consistency.TASK_TIMEOUT)
    tasks = await consistency.check_tasks_ended(clients, instances)
    report.phase(f"workload: idle {seconds:.1f} s after the loss of an instance, all {tasks} open tasks have ended")


async def check_sessions(instances, report) -> None:
    """A session of an earlier MCP version that begins at one instance continues at every other one."""
    for first in instances:
        client = first.mcp_client()
        await client.begin_session()
        for each in instances:
            continued = each.mcp_client()
            continued.session = client.session
            outcome = await continued.call("knowledge-tasks", {"active_only": True}, "session")
            if outcome.kind != "answered" or continued.session != client.session:
                raise InvariantViolation(f"a session of {first.name} is unknown to {each.name}: {outcome}")
    report.phase(f"workload: sessions of each of {len(instances)} instances continue at all of them")


async def check_takeover(instances, server, files, rng, report) -> None:
    """Other instances complete the tasks of a dead instance."""
    dead = rng.choice(instances)
    others = [each for each in instances if each is not dead]
    names = [f"orphan{number}.txt" for number in range(3)]
    tasks = []
    await consistency.wait_for_database(instances)
    for each in others:
        each.pause()
    try:
        # All other instances are paused for now, so the tasks belong to this one.
        for name in names:
            (files / name).write_text(document_text.document_text(name, 1, LONG_DOCUMENT_PARAGRAPHS))
            arguments = {"file_path": str(files / name), "knowledge_base": ORPHANS}
            tasks.append((await dead.mcp_client().call_checked("knowledge-add", arguments))["task_id"])
        await dead.kill()
        killed_at = time.monotonic()
    finally:
        for each in others:
            each.resume()
    sql = "SELECT runner FROM corbie.tasks WHERE state IN ('queued', 'running') AND filename LIKE 'orphan%'"
    runners = (await server.query(sql, DATABASE)).splitlines()
    if len(runners) < len(names):
        raise InvariantViolation(f"tasks of {dead.name} ended before it was killed; use longer documents: {runners}")
    while set((await server.query(sql, DATABASE)).splitlines()) & set(runners):
        if time.monotonic() > killed_at + 2 * MAX_TAKEOVER_DELAY:
            raise InvariantViolation(f"no takeover of tasks of a dead instance within {2 * MAX_TAKEOVER_DELAY} s")
        await asyncio.sleep(0.1)
    report.record_duration(TAKEOVER, time.monotonic() - killed_at, MAX_TAKEOVER_DELAY)
    for task, name in zip(tasks, names):
        status = await consistency.wait_for_task(others[0].mcp_client(), task, killed_at + MAX_COMPLETION_DELAY)
        if status["status"] != "completed":
            raise InvariantViolation(f"the task for {name} of the dead {dead.name} is not completed: {status}")
    report.record_duration(COMPLETION, time.monotonic() - killed_at, MAX_COMPLETION_DELAY)
    await dead.start()
    for each in instances:
        documents = await consistency.list_documents(each.mcp_client(), ORPHANS)
        listed = sorted(document["filename"] for document in documents)
        if listed != names:
            raise InvariantViolation(f"{each.name} lists {listed} instead of {names}")
    takeover, completion = report.durations[TAKEOVER][-1], report.durations[COMPLETION][-1]
    report.phase(f"workload: tasks of {dead.name} taken over after {takeover:.1f} s, done after {completion:.1f} s")
