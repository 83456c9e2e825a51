"""A client that adds, changes, finds, removes, cancels and clears documents, and knows what has to be there."""

import asyncio
import json
import random
import time
from pathlib import Path

import texts
from books import Cancel, Entry, Shelf
from broken import Broken
from mcp import FACES, Caller, Outcome

SHARED = "everybody"
# How long a client follows a task before its next operation.
FOLLOWS = 8
# Documents per base; beyond that the client prefers changing existing ones.
MOST = 12
TASK_ENDS = {"completed", "failed", "cancelled"}
# Allowed task states by state of the cancellation. Once acknowledged, the task is cancelled on every instance, and no
# process writes for it any more. A task that had ended before keeps its state.
GOES_ON = {"queued", "running"}
MAY_BE = {
    Cancel.NEVER_SENT: GOES_ON | {"completed", "failed"},
    Cancel.SENT: GOES_ON | TASK_ENDS,
    Cancel.ACKNOWLEDGED: {"cancelled"},
    Cancel.TOO_LATE: {"completed", "failed"},
}


class Client:
    def __init__(self, number: int, caller: Caller, files: Path, chance: random.Random) -> None:
        self.number = number
        self.caller = caller
        self.files = files
        self.chance = chance
        self.over = asyncio.Event()
        self.bases = 0
        # Every second client has its own bases, which it clears occasionally; the rest share one.
        self.shelves = [self._shelf()]

    def _shelf(self) -> Shelf:
        self.bases += 1
        return Shelf(self.number, SHARED if self.number % 2 else f"own{self.number}-{self.bases}")

    @property
    def shelf(self) -> Shelf:
        return self.shelves[-1]

    async def go_on(self, over: asyncio.Event) -> None:
        self.over = over
        while not over.is_set():
            await self.step()
            await asyncio.sleep(self.chance.uniform(0.02, 0.3))

    async def step(self) -> None:
        there = self.shelf.there()
        entry = self.chance.choice(there) if there else None
        choice = self.chance.random()
        # Adding takes longest by far: more of it would fill a short run.
        if choice < 0.12:
            await self.add(None, is_cancelled=True)
        elif choice < 0.30 or entry is None:
            await self.add(entry)
        elif choice < 0.42:
            await self.remove(entry)
        elif choice < 0.68:
            await self.search(entry)
        elif choice < 0.80:
            await self.read(entry)
        elif choice < 0.90:
            await self.search_in_vain()
        elif choice < 0.95 and self.shelf.base != SHARED:
            await self.clear()
        else:
            await self.classify()

    async def call(self, tool: str, **arguments) -> Outcome:
        if tool.startswith("knowledge") and tool != "knowledge-task-status":
            arguments["knowledge_base"] = self.shelf.base
        return await self.caller.call(tool, arguments, self.chance.choice(FACES))

    async def add(self, entry: Entry | None, is_cancelled: bool = False) -> None:
        """Adds a document, or another version of one, and waits for it or takes the promise."""
        shelf = self.shelf
        if entry is None or (len(shelf.entries) < MOST and self.chance.random() < 0.6):
            gone = [each for each in shelf.entries.values() if each.is_certain() and not each.is_there()]
            entry = self.chance.choice(gone) if gone and self.chance.random() < 0.5 else shelf.new()
        version = shelf.next_version()
        path = self.files / entry.name
        path.write_text(texts.text(entry.name, version))
        is_promise = is_cancelled or self.chance.random() < 0.5
        shelf.sent(entry, version)
        outcome = await self.call("knowledge-add", file_path=str(path), **{"async": is_promise})
        if outcome.kind == "refused":
            shelf.refused(entry, version)
        if outcome.kind != "said":
            return
        said = outcome.said
        if not said.get("success"):
            raise Broken(f"{entry.name} cannot be added: {said}")
        if not is_promise:
            shelf.became(entry, version, said["document_id"])
            self.caller.counts["adds acknowledged"] += 1
            return
        entry.task, entry.promised, entry.cancel = said["task_id"], version, Cancel.NEVER_SENT
        self.caller.counts["adds promised"] += 1
        if is_cancelled:
            await asyncio.sleep(self.chance.choice([0, 0, 0.1, 0.4]))
            await self.cancel(entry)
        await self.follow(entry)

    async def cancel(self, entry: Entry) -> None:
        """Asks for the end of a task that was promised, and notes what is known of it from now on."""
        entry.cancel = Cancel.SENT
        outcome = await self.caller.cancel(entry.task)
        if outcome.kind != "said":
            return
        if outcome.said == {"success": True, "taskId": entry.task, "status": "cancelled"}:
            entry.cancel = Cancel.ACKNOWLEDGED
            self.caller.counts["cancels acknowledged"] += 1
        elif outcome.said.get("error") == "task_ended":
            entry.cancel = Cancel.TOO_LATE
            self.caller.counts["cancels too late"] += 1
        else:
            raise Broken(f"the task {entry.task} of {entry.name} was promised, and its cancel is told: {outcome.said}")

    async def follow(self, entry: Entry) -> None:
        """Follows a task to its end, or as long as this client has patience."""
        until = time.monotonic() + FOLLOWS
        while not self.over.is_set() and time.monotonic() < until:
            outcome = await self.call("knowledge-task-status", task_id=entry.task)
            if outcome.kind == "said" and self.ended(self.shelf, entry, outcome.said):
                return
            await asyncio.sleep(0.2)

    def ended(self, shelf: Shelf, entry: Entry, said: dict) -> bool:
        """Notes what became of a task, if it has ended."""
        status = said.get("status")
        if status not in MAY_BE[entry.cancel]:
            raise Broken(f"the task {entry.task} of {entry.name} (cancel: {entry.cancel.value}) is told to be: {said}")
        if status == "failed" and "ended 3 times" not in json.dumps(said):
            raise Broken(f"the task {entry.task} of {entry.name} was promised, and failed: {said}")
        if status in GOES_ON:
            return False
        if status == "completed":
            shelf.became(entry, entry.promised, said["result"]["document_id"])
            self.caller.counts["adds acknowledged"] += 1
        else:
            shelf.refused(entry, entry.promised)
            given_up = "adds given up after three kills"
            self.caller.counts["adds cancelled" if status == "cancelled" else given_up] += 1
        return True

    async def remove(self, entry: Entry) -> None:
        shelf = self.shelf
        shelf.sent(entry, None)
        outcome = await self.call("knowledge-remove", document_id=entry.id, confirm=True)
        if outcome.kind == "refused":
            shelf.refused(entry, None)
        if outcome.kind != "said":
            return
        if not outcome.said.get("success"):
            raise Broken(f"{entry.name} is there, and cannot be removed: {outcome.said}")
        shelf.became(entry, None, None)
        self.caller.counts["removals acknowledged"] += 1

    async def search(self, entry: Entry) -> None:
        """What is there is found by its word at once, whichever instance is asked."""
        outcome = await self.call("knowledge-search", query=entry.word(), top_k=5)
        if outcome.kind == "said":
            found(entry, self.shelf.base, outcome.said)
            self.caller.counts["passages found"] += 1

    async def search_in_vain(self) -> None:
        if not self.shelf.dead:
            return
        word = self.chance.choice(self.shelf.dead[-20:])
        outcome = await self.call("knowledge-search", query=word, top_k=5)
        if outcome.kind == "said":
            not_found(word, self.shelf.base, outcome.said)
            self.caller.counts["searched in vain"] += 1

    async def read(self, entry: Entry) -> None:
        outcome = await self.call("knowledge-get", document_id=entry.id, max_characters=100_000)
        if outcome.kind == "said":
            same_text(entry, entry.may_be[0], outcome.said)
            self.caller.counts["read"] += 1

    async def clear(self) -> None:
        shelf = self.shelf
        if not all(entry.is_certain() for entry in shelf.entries.values()):
            # In-doubt documents stay in doubt: the client starts a new base, which can be cleared.
            self.shelves.append(self._shelf())
            return
        outcome = await self.call("knowledge-clear", confirm=True, confirmation_phrase="DELETE ALL")
        if outcome.kind == "said":
            if not outcome.said.get("success"):
                raise Broken(f"{shelf.base} cannot be cleared: {outcome.said}")
            shelf.cleared()
            self.caller.counts["bases cleared"] += 1
        elif outcome.kind == "lost":
            # The clear may still take effect: the client abandons this base and starts a new one.
            for entry in shelf.entries.values():
                shelf.sent(entry, None)
            self.shelves.append(self._shelf())

    async def classify(self) -> None:
        outcome = await self.call("classify_text", text="What is the sum of two and two?")
        if outcome.why.startswith("storage"):
            raise Broken(f"classification needs no database, and is told: {outcome.why}")
        self.caller.counts["classified"] += outcome.kind == "said"


def found(entry: Entry, base: str, said: dict) -> None:
    word = entry.word()
    hits = [hit for hit in said.get("results") or [] if hit["filename"] == entry.name]
    if not hits:
        raise Broken(f"{entry.name} in version {entry.may_be[0]} ({word}) is not found in {base}: {json.dumps(said)}")
    for hit in hits:
        if not texts.is_of_one_version(hit["chunk_text"], word):
            raise Broken(f"{entry.name} is {entry.may_be[0]} ({word}), and a passage says: {hit['chunk_text']}")


def not_found(word: str, base: str, said: dict) -> None:
    if any(word in hit["chunk_text"] for hit in said.get("results") or []):
        raise Broken(f"what was removed, replaced or cancelled ({word}) is found in {base}: {json.dumps(said)}")


def same_text(entry: Entry, version: int, said: dict) -> None:
    pages = said.get("pages") or [{}]
    text = pages[0].get("text", "")
    if text.split() != texts.text(entry.name, version).split():
        raise Broken(f"{entry.name} is {version}, and says: {text or said}")
