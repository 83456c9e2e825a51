"""Several instances behind a proxy, many clients, and faults: nothing is lost or doubled, and all say the same."""

import asyncio
import random
import time
from pathlib import Path

import askers
import checks
import editors
import floors
import texts
from broken import Broken
from clients import Client
from database import Server
from faults import Faults
from instances import Instance
from mcp import Caller
from notices import Notices
from proxy import Proxy
from report import Report

DATABASE = "together"
ORPHANS = "orphans"
# Documented limits (docs/postgres.md). The database was unavailable just before: no instance is declared dead in the 10
# seconds after that, and then instances check every 5 seconds.
TAKEN_OVER_WITHIN = 15
# There is no guarantee for the duration of the work itself: this is slack for a busy machine.
FINISHED_WITHIN = 30
# Number of paragraphs that keep an instance busy until it is killed.
LONG = 40
# Number of clients that change the taxonomy, and that call models.
EDITORS = 3
ASKERS = 3
# Number of words to search for at the end, on every instance.
WORDS = 30
# Share of the time for faults; the rest is for checks.
SHARE = 0.5


async def run(options, server: Server, folder: Path, report: Report) -> None:
    chance = random.Random(options.seed)
    await server.ask(f"CREATE DATABASE {DATABASE}")
    files = folder / "files"
    files.mkdir()
    instances = [Instance(number, folder, server.url(DATABASE)) for number in range(1, options.instances + 1)]
    proxy = Proxy(instances)
    try:
        # Concurrently: they create the tables together.
        await asyncio.gather(*(each.start() for each in instances))
        await proxy.start()
        report.phase(f"together: {len(instances)} instances run")
        clients = [
            Client(number, Caller(proxy.address, report.counts), files, random.Random(f"{options.seed} {number}"))
            for number in range(options.clients)
        ]
        changing = [
            editors.Editor(number, Caller(proxy.address, report.counts), random.Random(f"{options.seed} e{number}"))
            for number in range(EDITORS)
        ]
        asking = [
            askers.Asker(number, proxy.address, report.counts, random.Random(f"{options.seed} a{number}"))
            for number in range(ASKERS)
        ]
        await struck(options, clients + changing + asking, instances, server, chance, report)
        # Immediately: leftovers of the faults are adopted in the same time.
        await taken_over(instances, server, files, chance, report)
        await at_rest(clients, instances, report)
        # Notifications are measured in between: before each, no document may have changed for a while.
        notices = Notices(instances)
        await notices.prepare(files)
        await checks.documents(clients, instances, report)
        report.phase(f"together: {report.counts['documents compared']} documents are there once, with their text")
        await notices.measure(report)
        await checks.searches(clients, instances, chance, report, WORDS)
        report.phase(f"together: {report.counts['searches compared']} searches are answered alike by all")
        await notices.measure(report)
        await editors.measure(changing, instances, report)
        await sessions(instances, report)
        await askers.measure(proxy, instances, report)
        await notices.measure_rest(report)
        await checks.health(instances)
        floors.check(report)
    finally:
        proxy.stop()
        for each in instances:
            await each.kill()


async def struck(options, clients, instances, server, chance, report) -> None:
    faults = Faults(instances, server, DATABASE, chance, report)
    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.go_on(over))
        until = time.monotonic() + options.seconds * SHARE
        group.create_task(faults.strike(until, lambda: not floors.missed(report), over))
        group.create_task(editors.agree(instances, over, report))
    struck_by = ", ".join(f"{count} {kind}" for kind, count in sorted(report.faults.items()))
    report.phase(f"together: {len(clients)} clients, {report.counts['calls']} calls, faults: {struck_by}")


async def at_rest(clients, instances, report) -> None:
    seconds = await checks.rest(instances)
    seconds += report.times["and finished"][-1]
    report.took("all tasks end after an instance was lost", seconds, checks.TASKS_END_WITHIN)
    open_tasks = await checks.end_tasks(clients, instances)
    report.phase(f"together: at rest {seconds:.1f} s after it died, {open_tasks} promised tasks have ended")


async def sessions(instances, report) -> None:
    """A session of an older revision that was begun with one instance goes on with every other one."""
    for begun in instances:
        caller = begun.caller()
        await caller.begin_session()
        for each in instances:
            moved = each.caller()
            moved.session = caller.session
            outcome = await moved.call("knowledge-tasks", {"active_only": True}, "session")
            if outcome.kind != "said" or moved.session != caller.session:
                raise Broken(f"a session of {begun.name} is not known to {each.name}: {outcome}")
    report.phase(f"together: sessions of each of {len(instances)} instances go on with all")


async def taken_over(instances, server, files, chance, report) -> None:
    """Tasks of an instance that dies and does not come back are done by others."""
    lost = chance.choice(instances)
    others = [each for each in instances if each is not lost]
    names = [f"orphan{number}.txt" for number in range(3)]
    tasks = []
    await checks.answer(instances)
    for each in others:
        each.freeze()
    try:
        # All other instances are stopped for now, so the tasks belong to this one.
        for name in names:
            (files / name).write_text(texts.text(name, 1, LONG))
            arguments = {"file_path": str(files / name), "knowledge_base": ORPHANS}
            tasks.append((await lost.caller().must("knowledge-add", arguments))["task_id"])
        await lost.kill()
        killed = time.monotonic()
    finally:
        for each in others:
            each.thaw()
    sql = "SELECT runner FROM corbie.tasks WHERE state IN ('queued', 'running') AND filename LIKE 'orphan%'"
    runners = (await server.ask(sql, DATABASE)).splitlines()
    if len(runners) < len(names):
        raise Broken(f"the tasks of {lost.name} ended before it was killed; give them more to do: {runners}")
    while set((await server.ask(sql, DATABASE)).splitlines()) & set(runners):
        if time.monotonic() > killed + 2 * TAKEN_OVER_WITHIN:
            raise Broken(f"tasks of a dead instance are not taken over after {2 * TAKEN_OVER_WITHIN} s")
        await asyncio.sleep(0.1)
    report.took("a task of a dead instance is taken over", time.monotonic() - killed, TAKEN_OVER_WITHIN)
    for task, name in zip(tasks, names):
        said = await checks.end_of(others[0].caller(), task, killed + FINISHED_WITHIN)
        if said["status"] != "completed":
            raise Broken(f"{name} of {lost.name}, which died, is not finished: {said}")
    report.took("and finished", time.monotonic() - killed, FINISHED_WITHIN)
    await lost.start()
    for each in instances:
        shown = sorted(document["filename"] for document in await checks.listing(each.caller(), ORPHANS))
        if shown != names:
            raise Broken(f"{each.name} lists {shown}, and {names} were taken over")
    over, finished = report.times["a task of a dead instance is taken over"][-1], report.times["and finished"][-1]
    report.phase(f"together: tasks of {lost.name} taken over after {over:.1f} s, finished after {finished:.1f} s")
