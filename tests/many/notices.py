"""Clients that follow the list of documents hear of a change through any instance."""

import asyncio
import time
from pathlib import Path

import texts
from broken import Broken
from instances import Instance
from listening import Listener
from report import Report

# Documented staleness (docs/postgres.md).
HEARD_WITHIN = 1
# Every instance polls every 4 seconds: after this time, no notification belongs to an earlier change.
QUIET = 4.5


class Notices:
    """Changes through one instance are heard at every other one."""

    def __init__(self, instances: list[Instance]) -> None:
        self.instances = instances
        self.listeners: list[Listener] = []
        # Pending removals, with the instance to use.
        self.removals: list[tuple[Instance, str]] = []
        self.changed = 0.0

    async def prepare(self, files: Path) -> None:
        """Adds what will be removed, and listens."""
        self.listeners = [Listener(each.address) for each in self.instances]
        await asyncio.gather(*(each.ready() for each in self.listeners))
        for number, instance in enumerate(self.instances):
            name = f"notice{number}.txt"
            (files / name).write_text(texts.text(name, 1))
            arguments = {"file_path": str(files / name), "async": False, "knowledge_base": "notices"}
            added = await instance.caller().must("knowledge-add", arguments)
            self.removals.append((instance, added["document_id"]))
        self.changed = time.monotonic()

    async def measure_rest(self, report: Report) -> None:
        while self.removals:
            await self.measure(report)
        for each in self.listeners:
            each.stop()
        times = report.times["a notice at another instance"]
        if len(times) != len(self.instances) * (len(self.instances) - 1):
            raise Broken(f"only {len(times)} notices were measured among {len(self.instances)} instances")
        report.phase(f"together: {len(times)} notices, the last {max(times) * 1000:.0f} ms after the call began")

    async def measure(self, report: Report) -> None:
        """A removal through the next instance is heard at the others."""
        if not self.removals:
            return
        instance, document = self.removals.pop()
        others = [each for each in self.listeners if each.address != instance.address]
        await asyncio.sleep(self.changed + QUIET - time.monotonic())
        for each in others:
            each.forget()
        begun = time.monotonic()
        arguments = {"document_id": document, "confirm": True, "knowledge_base": "notices"}
        await instance.caller().must("knowledge-remove", arguments)
        self.changed = time.monotonic()
        for each in others:
            heard = await each.next(HEARD_WITHIN + QUIET)
            if heard is None:
                raise Broken(f"a removal through {instance.name} was not heard at port {each.address[1]}")
            report.took("a notice at another instance", heard - begun, HEARD_WITHIN)
