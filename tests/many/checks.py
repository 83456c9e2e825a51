"""What has to be true once nothing is broken any more, looked at through every instance."""

import asyncio
import time
from collections import defaultdict

import texts
import wire
from books import Shelf
from broken import Broken
from clients import TASK_ENDS, Client, found, not_found, same_text
from instances import Instance
from mcp import Caller

# Concurrent requests.
TOGETHER = 8
TASKS_END_WITHIN = 30


async def all_of(things: list) -> list:
    """Some at a time, and the first failure ends it."""
    gate = asyncio.Semaphore(TOGETHER)

    async def one(thing):
        async with gate:
            return await thing

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(thing)) for thing in things]
    return [task.result() for task in tasks]


async def rest(instances: list[Instance]) -> float:
    """Waits until no task is open and no request is under way; gives how long that took."""
    begun = time.monotonic()
    while True:
        idle = await asyncio.gather(*(_is_idle(each.caller()) for each in instances))
        if all(each is None for each in idle):
            return time.monotonic() - begun
        if time.monotonic() > begun + TASKS_END_WITHIN:
            raise Broken(f"not at rest {TASKS_END_WITHIN} s after the last fault: {[each for each in idle if each]}")
        await asyncio.sleep(0.1)


async def answer(instances: list[Instance]) -> None:
    """Waits until every instance reaches the database."""
    until = time.monotonic() + TASKS_END_WITHIN
    for each in instances:
        while (outcome := await each.caller().call("knowledge-tasks", {"active_only": True})).kind != "said":
            if time.monotonic() > until:
                raise Broken(f"{each.name} does not reach the database, which is there: {outcome.why}")
            await asyncio.sleep(0.1)


async def end_of(caller: Caller, task: str, until: float) -> dict:
    """What is told of a task once it has ended, or when there is no more time."""
    while True:
        said = await caller.must("knowledge-task-status", {"task_id": task})
        if said.get("status") in TASK_ENDS or time.monotonic() > until:
            return said
        await asyncio.sleep(0.1)


async def _is_idle(caller: Caller) -> str | None:
    open_tasks = await caller.call("knowledge-tasks", {"active_only": True})
    if open_tasks.kind != "said" or open_tasks.said.get("tasks"):
        return f"{caller.address[1]}: {open_tasks}"
    inside = await caller.call("inspect_server", {})
    # This request itself counts as one in flight.
    under_way = (inside.said.get("queues") or {}).get("requests_in_flight") or 0
    return f"{caller.address[1]}: {under_way} requests are under way" if under_way > 1 else None


async def end_tasks(clients: list[Client], instances: list[Instance]) -> int:
    """Every task that was promised has an end, and every instance says the same of it."""
    async def one(client: Client, shelf: Shelf, entry) -> None:
        said = [await each.caller().must("knowledge-task-status", {"task_id": entry.task}) for each in instances]
        ends = {each.get("status") for each in said}
        if len(ends) > 1:
            raise Broken(f"the task {entry.task} is told differently: {said}")
        task = entry.task
        if not client.ended(shelf, entry, said[0]):
            raise Broken(f"the task {task} of {entry.name} has no end: {said[0]}")

    promised = [
        (client, shelf, entry) for client in clients for shelf in client.shelves
        for entry in shelf.entries.values() if entry.task is not None
    ]
    await all_of([one(*each) for each in promised])
    return len(promised)


async def listing(caller: Caller, base: str) -> list[dict]:
    shown: list[dict] = []
    while True:
        arguments = {"limit": 1000, "offset": len(shown), "knowledge_base": base, "sort_by": "filename"}
        page = await caller.must("knowledge-show", arguments)
        shown += page.get("documents") or []
        if not page.get("documents") or len(shown) >= page["total_count"]:
            return shown


async def same_everywhere(what: str, ask, instances: list[Instance]) -> object:
    """What every instance says, the same at once: what was written is seen everywhere with the answer to its writer."""
    said = await asyncio.gather(*(ask(each.caller()) for each in instances))
    if any(each != said[0] for each in said):
        raise Broken(f"instances differ about {what}: {said}")
    return said[0]


async def documents(clients: list[Client], instances: list[Instance], report) -> None:
    """Every document is what it may be, exactly once, at every instance; there are no others."""
    shelves: dict[str, list[Shelf]] = defaultdict(list)
    for client in clients:
        for shelf in client.shelves:
            shelves[shelf.base].append(shelf)
    for base, of_base in shelves.items():
        shown = await same_everywhere(f"the list of {base}", lambda caller: listing(caller, base), instances)
        there = [each for each in shown if each["processing_status"] != "failed"]
        by_name = defaultdict(list)
        for each in there:
            by_name[each["filename"]].append(each)
        entries = {name: (shelf, entry) for shelf in of_base for name, entry in shelf.entries.items()}
        for name, listed in by_name.items():
            if name not in entries:
                raise Broken(f"a document nobody added to {base}: {listed}")
            if len(listed) > 1:
                raise Broken(f"{name} is in {base} {len(listed)} times: {listed}")
            if listed[0]["processing_status"] != "completed":
                raise Broken(f"{name} is at rest, and not whole: {listed}")
        removed = set().union(*(shelf.removed_ids for shelf in of_base))
        if back := [each for each in shown if each["id"] in removed]:
            raise Broken(f"what was removed came back to {base}: {back}")
        await all_of([_one(shelf, entry, by_name.get(name), instances) for name, (shelf, entry) in entries.items()])
        report.counts["documents compared"] += len(there) * len(instances)


async def _one(shelf: Shelf, entry, listed: list[dict] | None, instances: list[Instance]) -> None:
    if listed is None:
        if None not in entry.may_be:
            raise Broken(f"{entry.name} is lost; it may be {entry.may_be} in {shelf.base}")
        shelf.became(entry, None, None)
        return
    if entry.may_be == [None]:
        raise Broken(f"{entry.name} was removed from {shelf.base}, and is there: {listed}")
    document = listed[0]["id"]
    arguments = {"document_id": document, "max_characters": 100_000, "knowledge_base": shelf.base}
    got = [await each.caller().must("knowledge-get", arguments) for each in instances]
    text = ((got[0].get("pages") or [{}])[0].get("text") or "").split()
    versions = [each for each in entry.may_be if each is not None and texts.text(entry.name, each).split() == text]
    if not versions:
        raise Broken(f"{entry.name} may be {entry.may_be} in {shelf.base}, and says: {' '.join(text) or got[0]}")
    for each in got:
        same_text(entry, versions[0], each)
    shelf.became(entry, versions[0], document)


async def searches(clients: list[Client], instances: list[Instance], chance, report, most: int) -> None:
    """What is there is found at every instance, in the same way; what is not is found at none."""
    there = [(shelf, entry) for client in clients for shelf in client.shelves for entry in shelf.there()]
    dead = [(shelf, word) for client in clients for shelf in client.shelves for word in shelf.dead]

    async def search(caller: Caller, base: str, word: str) -> dict:
        said = await caller.must("knowledge-search", {"query": word, "top_k": 5, "knowledge_base": base})
        # The search time differs between instances.
        return {key: value for key, value in said.items() if key != "search_time_ms"}

    async def present(shelf: Shelf, entry) -> None:
        word = entry.word()
        said = await same_everywhere(word, lambda caller: search(caller, shelf.base, word), instances)
        found(entry, shelf.base, said)

    async def absent(shelf: Shelf, word: str) -> None:
        for each in instances:
            not_found(word, shelf.base, await search(each.caller(), shelf.base, word))

    await all_of([present(*each) for each in chance.sample(there, min(most, len(there)))])
    await all_of([absent(*each) for each in chance.sample(dead, min(most, len(dead)))])
    report.counts["searches compared"] += min(most, len(there)) + min(most, len(dead))


async def health(instances: list[Instance]) -> None:
    for each in instances:
        each.look_for_faults()
        try:
            reply = await each.caller().get("/ready")
        except wire.LOST as error:
            raise Broken(f"{each.name} does not answer /ready: {error!r}") from error
        if reply.status != 200:
            raise Broken(f"{each.name} is not ready: {reply.status} {reply.text()}")
