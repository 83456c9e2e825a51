"""Client-side ledger of acknowledged writes: the possible states of every document as far as its client knows them."""

from dataclasses import dataclass, field
from enum import Enum

import document_text

# Version number of a document; None if it does not exist.
Version = int | None


class CancelState(Enum):
    """What the client knows about the cancellation of a task."""

    NEVER_SENT = "never sent"
    # No reply: the cancellation may or may not take effect.
    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    # The task had ended before.
    TOO_LATE = "too late"


@dataclass
class LedgerEntry:
    """One document. Only one client changes it, one change at a time."""

    name: str
    # All possible versions; exactly one when the state is certain.
    possible_versions: list[Version] = field(default_factory=lambda: [None])
    id: str | None = None
    # An accepted task with an unknown end, the version it writes, and the state of its cancellation.
    task: str | None = None
    task_version: Version = None
    cancel: CancelState = CancelState.NEVER_SENT

    def is_certain(self) -> bool:
        return len(self.possible_versions) == 1 and self.task is None

    def exists(self) -> bool:
        return self.is_certain() and self.possible_versions[0] is not None

    def unique_word(self) -> str:
        return document_text.unique_word(self.name, self.possible_versions[0])


class Ledger:
    """The documents of one client in one knowledge base."""

    def __init__(self, client: int, base: str) -> None:
        self.client = client
        self.base = base
        self.entries: dict[str, LedgerEntry] = {}
        # Words of removed, replaced or rejected versions, and removed ids: none may reappear.
        self.dead_words: list[str] = []
        self.removed_ids: set[str] = set()
        self.last_version = 0

    def new_entry(self) -> LedgerEntry:
        # The name contains the base: a client that cleared a base starts a new one with new files.
        name = f"{self.base}-c{self.client}d{len(self.entries)}.txt"
        return self.entries.setdefault(name, LedgerEntry(name))

    def next_version(self) -> int:
        self.last_version += 1
        return self.last_version

    def existing(self) -> list[LedgerEntry]:
        return [entry for entry in self.entries.values() if entry.exists()]

    def record_sent(self, entry: LedgerEntry, version: Version) -> None:
        """A change was sent and its outcome is unknown: from now on either state is possible."""
        if version not in entry.possible_versions:
            entry.possible_versions.append(version)

    def record_acknowledged(self, entry: LedgerEntry, version: Version, id: str | None) -> None:
        """The change was acknowledged: this version is the only possible one."""
        for previous in entry.possible_versions:
            self._record_dead(entry, previous, version)
        if version is None and entry.id is not None:
            self.removed_ids.add(entry.id)
        entry.possible_versions, entry.id, entry.task, entry.task_version = [version], id, None, None

    def record_refused(self, entry: LedgerEntry, version: Version) -> None:
        """The change was rejected and had no effect."""
        if len(entry.possible_versions) > 1:
            entry.possible_versions.remove(version)
            self._record_dead(entry, version, None)
        entry.task, entry.task_version = None, None

    def record_cleared(self) -> None:
        for entry in self.entries.values():
            self.record_acknowledged(entry, None, None)

    def _record_dead(self, entry: LedgerEntry, version: Version, current: Version) -> None:
        if version is not None and version != current:
            self.dead_words.append(document_text.unique_word(entry.name, version))
