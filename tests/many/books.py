"""What was acknowledged, kept outside of the program: the state of every document as far as its owner can know it."""

from dataclasses import dataclass, field
from enum import Enum

import texts

# Version number of a document; None if it does not exist.
Version = int | None


class Cancel(Enum):
    """What is known of the wish to cancel a task."""

    NEVER_SENT = "never sent"
    # No reply: the cancellation may or may not take effect.
    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    # The task had ended before.
    TOO_LATE = "too late"


@dataclass
class Entry:
    """One document. Only one client changes it, and one thing at a time."""

    name: str
    # All possible versions; exactly one when the state is certain.
    may_be: list[Version] = field(default_factory=lambda: [None])
    id: str | None = None
    # An accepted task with an unknown end, the version it writes, and the state of its cancellation.
    task: str | None = None
    promised: Version = None
    cancel: Cancel = Cancel.NEVER_SENT

    def is_certain(self) -> bool:
        return len(self.may_be) == 1 and self.task is None

    def is_there(self) -> bool:
        return self.is_certain() and self.may_be[0] is not None

    def word(self) -> str:
        return texts.word(self.name, self.may_be[0])


class Shelf:
    """The documents of one client in one knowledge base."""

    def __init__(self, client: int, base: str) -> None:
        self.client = client
        self.base = base
        self.entries: dict[str, Entry] = {}
        # Words of removed, replaced or rejected versions, and removed ids: none may reappear.
        self.dead: list[str] = []
        self.removed_ids: set[str] = set()
        self.last = 0

    def new(self) -> Entry:
        # The name contains the base: a client that cleared a base starts a new one with new files.
        name = f"{self.base}-c{self.client}d{len(self.entries)}.txt"
        return self.entries.setdefault(name, Entry(name))

    def next_version(self) -> int:
        self.last += 1
        return self.last

    def there(self) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.is_there()]

    def sent(self, entry: Entry, becomes: Version) -> None:
        """A change was sent, and nothing is known of it: from now on either may be true."""
        if becomes not in entry.may_be:
            entry.may_be.append(becomes)

    def became(self, entry: Entry, version: Version, id: str | None) -> None:
        """It was acknowledged: this is true, and nothing else."""
        for before in entry.may_be:
            self._bury(entry, before, version)
        if version is None and entry.id is not None:
            self.removed_ids.add(entry.id)
        entry.may_be, entry.id, entry.task, entry.promised = [version], id, None, None

    def refused(self, entry: Entry, version: Version) -> None:
        """It was refused: nothing has changed by it."""
        if len(entry.may_be) > 1:
            entry.may_be.remove(version)
            self._bury(entry, version, None)
        entry.task, entry.promised = None, None

    def cleared(self) -> None:
        for entry in self.entries.values():
            self.became(entry, None, None)

    def _bury(self, entry: Entry, version: Version, now: Version) -> None:
        if version is not None and version != now:
            self.dead.append(texts.word(entry.name, version))
