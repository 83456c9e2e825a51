"""Client that adds, changes, finds, removes, cancels and clears documents and knows the expected contents."""

import asyncio
import json
import random
import time
from pathlib import Path

import document_text
from invariant_violation import InvariantViolation
from ledger import CancelState, Ledger, LedgerEntry
from mcp_client import PROTOCOLS, McpClient, Outcome

SHARED_BASE = "shared"
# How long a client polls a task before its next operation.
TASK_POLL_TIMEOUT = 8
# Documents per base; beyond that the client prefers changing existing ones.
MAX_DOCUMENTS = 12
FINAL_STATES = {"completed", "failed", "cancelled"}
ACTIVE_STATES = {"queued", "running"}
# Allowed task states by state of the cancellation. Once acknowledged, the task is cancelled on every instance, and no
# process writes for it any more. A task that had ended before keeps its state.
ALLOWED_STATES = {
    CancelState.NEVER_SENT: ACTIVE_STATES | {"completed", "failed"},
    CancelState.SENT: ACTIVE_STATES | FINAL_STATES,
    CancelState.ACKNOWLEDGED: {"cancelled"},
    CancelState.TOO_LATE: {"completed", "failed"},
}


class DocumentClient:
    def __init__(self, number: int, mcp_client: McpClient, files: Path, rng: random.Random) -> None:
        self.number = number
        self.mcp_client = mcp_client
        self.files = files
        self.rng = rng
        self.stop = asyncio.Event()
        self.bases = 0
        # Every second client has its own bases, which it clears occasionally; the rest share one.
        self.ledgers = [self._new_ledger()]

    def _new_ledger(self) -> Ledger:
        self.bases += 1
        return Ledger(self.number, SHARED_BASE if self.number % 2 else f"own{self.number}-{self.bases}")

    @property
    def ledger(self) -> Ledger:
        return self.ledgers[-1]

    async def run(self, stop: asyncio.Event) -> None:
        self.stop = stop
        while not stop.is_set():
            await self.step()
            await asyncio.sleep(self.rng.uniform(0.02, 0.3))

    async def step(self) -> None:
        existing = self.ledger.existing()
        entry = self.rng.choice(existing) if existing else None
        choice = self.rng.random()
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
            await self.search_dead_version()
        elif choice < 0.95 and self.ledger.base != SHARED_BASE:
            await self.clear()
        else:
            await self.classify()

    async def call(self, tool: str, **arguments) -> Outcome:
        if tool.startswith("knowledge") and tool != "knowledge-task-status":
            arguments["knowledge_base"] = self.ledger.base
        return await self.mcp_client.call(tool, arguments, self.rng.choice(PROTOCOLS))

    async def add(self, entry: LedgerEntry | None, is_cancelled: bool = False) -> None:
        """Adds a document or a new version of one, and waits for it or accepts the task id."""
        ledger = self.ledger
        if entry is None or (len(ledger.entries) < MAX_DOCUMENTS and self.rng.random() < 0.6):
            removed = [each for each in ledger.entries.values() if each.is_certain() and not each.exists()]
            entry = self.rng.choice(removed) if removed and self.rng.random() < 0.5 else ledger.new_entry()
        version = ledger.next_version()
        path = self.files / entry.name
        path.write_text(document_text.document_text(entry.name, version))
        is_async = is_cancelled or self.rng.random() < 0.5
        ledger.record_sent(entry, version)
        outcome = await self.call("knowledge-add", file_path=str(path), **{"async": is_async})
        if outcome.kind == "refused":
            ledger.record_refused(entry, version)
        if outcome.kind != "answered":
            return
        result = outcome.result
        if not result.get("success"):
            raise InvariantViolation(f"{entry.name} cannot be added: {result}")
        if not is_async:
            ledger.record_acknowledged(entry, version, result["document_id"])
            self.mcp_client.counts["adds acknowledged"] += 1
            return
        entry.task, entry.task_version, entry.cancel = result["task_id"], version, CancelState.NEVER_SENT
        self.mcp_client.counts["adds accepted as tasks"] += 1
        if is_cancelled:
            await asyncio.sleep(self.rng.choice([0, 0, 0.1, 0.4]))
            await self.cancel(entry)
        await self.poll_task(entry)

    async def cancel(self, entry: LedgerEntry) -> None:
        """Cancels an accepted task and records the state of the cancellation."""
        entry.cancel = CancelState.SENT
        outcome = await self.mcp_client.cancel(entry.task)
        if outcome.kind != "answered":
            return
        if outcome.result == {"success": True, "taskId": entry.task, "status": "cancelled"}:
            entry.cancel = CancelState.ACKNOWLEDGED
            self.mcp_client.counts["cancels acknowledged"] += 1
        elif outcome.result.get("error") == "task_ended":
            entry.cancel = CancelState.TOO_LATE
            self.mcp_client.counts["cancels too late"] += 1
        else:
            raise InvariantViolation(f"cancelling the accepted task {entry.task} of {entry.name}: {outcome.result}")

    async def poll_task(self, entry: LedgerEntry) -> None:
        """Polls a task until it ends or the timeout passes."""
        deadline = time.monotonic() + TASK_POLL_TIMEOUT
        while not self.stop.is_set() and time.monotonic() < deadline:
            outcome = await self.call("knowledge-task-status", task_id=entry.task)
            if outcome.kind == "answered" and self.record_task_end(self.ledger, entry, outcome.result):
                return
            await asyncio.sleep(0.2)

    def record_task_end(self, ledger: Ledger, entry: LedgerEntry, result: dict) -> bool:
        """Records the end of a task; returns whether it has ended."""
        status = result.get("status")
        if status not in ALLOWED_STATES[entry.cancel]:
            raise InvariantViolation(f"task {entry.task} of {entry.name} (cancel: {entry.cancel.value}): {result}")
        if status == "failed" and "ended 3 times" not in json.dumps(result):
            raise InvariantViolation(f"the accepted task {entry.task} of {entry.name} failed: {result}")
        if status in ACTIVE_STATES:
            return False
        if status == "completed":
            ledger.record_acknowledged(entry, entry.task_version, result["result"]["document_id"])
            self.mcp_client.counts["adds acknowledged"] += 1
        else:
            ledger.record_refused(entry, entry.task_version)
            is_cancelled = status == "cancelled"
            self.mcp_client.counts["adds cancelled" if is_cancelled else "adds failed after three kills"] += 1
        return True

    async def remove(self, entry: LedgerEntry) -> None:
        ledger = self.ledger
        ledger.record_sent(entry, None)
        outcome = await self.call("knowledge-remove", document_id=entry.id, confirm=True)
        if outcome.kind == "refused":
            ledger.record_refused(entry, None)
        if outcome.kind != "answered":
            return
        if not outcome.result.get("success"):
            raise InvariantViolation(f"{entry.name} exists, but cannot be removed: {outcome.result}")
        ledger.record_acknowledged(entry, None, None)
        self.mcp_client.counts["removals acknowledged"] += 1

    async def search(self, entry: LedgerEntry) -> None:
        """An existing document is found by its unique word immediately, on every instance."""
        outcome = await self.call("knowledge-search", query=entry.unique_word(), top_k=5)
        if outcome.kind == "answered":
            check_found(entry, self.ledger.base, outcome.result)
            self.mcp_client.counts["passages found"] += 1

    async def search_dead_version(self) -> None:
        """A removed, replaced or rejected version is not found."""
        if not self.ledger.dead_words:
            return
        word = self.rng.choice(self.ledger.dead_words[-20:])
        outcome = await self.call("knowledge-search", query=word, top_k=5)
        if outcome.kind == "answered":
            check_not_found(word, self.ledger.base, outcome.result)
            self.mcp_client.counts["dead versions not found"] += 1

    async def read(self, entry: LedgerEntry) -> None:
        outcome = await self.call("knowledge-get", document_id=entry.id, max_characters=100_000)
        if outcome.kind == "answered":
            check_text(entry, entry.possible_versions[0], outcome.result)
            self.mcp_client.counts["documents read"] += 1

    async def clear(self) -> None:
        ledger = self.ledger
        if not all(entry.is_certain() for entry in ledger.entries.values()):
            # In-doubt documents stay in doubt: the client starts a new base, which can be cleared.
            self.ledgers.append(self._new_ledger())
            return
        outcome = await self.call("knowledge-clear", confirm=True, confirmation_phrase="DELETE ALL")
        if outcome.kind == "answered":
            if not outcome.result.get("success"):
                raise InvariantViolation(f"{ledger.base} cannot be cleared: {outcome.result}")
            ledger.record_cleared()
            self.mcp_client.counts["bases cleared"] += 1
        elif outcome.kind == "lost":
            # The clear may still take effect: the client abandons this base and starts a new one.
            for entry in ledger.entries.values():
                ledger.record_sent(entry, None)
            self.ledgers.append(self._new_ledger())

    async def classify(self) -> None:
        outcome = await self.call("classify_text", text="What is the sum of two and two?")
        if outcome.reason.startswith("storage"):
            raise InvariantViolation(f"classification needs no database, but failed: {outcome.reason}")
        self.mcp_client.counts["texts classified"] += outcome.kind == "answered"


def check_found(entry: LedgerEntry, base: str, result: dict) -> None:
    word = entry.unique_word()
    version = entry.possible_versions[0]
    hits = [hit for hit in result.get("results") or [] if hit["filename"] == entry.name]
    if not hits:
        raise InvariantViolation(f"{entry.name} version {version} ({word}) not found in {base}: {json.dumps(result)}")
    for hit in hits:
        if not document_text.is_of_one_version(hit["chunk_text"], word):
            raise InvariantViolation(f"{entry.name} has version {version} ({word}), but a hit: {hit['chunk_text']}")


def check_not_found(word: str, base: str, result: dict) -> None:
    if any(word in hit["chunk_text"] for hit in result.get("results") or []):
        raise InvariantViolation(f"the dead version {word} is found in {base}: {json.dumps(result)}")


def check_text(entry: LedgerEntry, version: int, result: dict) -> None:
    pages = result.get("pages") or [{}]
    text = pages[0].get("text", "")
    if text.split() != document_text.document_text(entry.name, version).split():
        raise InvariantViolation(f"{entry.name} has version {version}, but this text: {text or result}")
