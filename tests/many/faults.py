"""What is done to instances and to the database while clients use them. The choices follow a seed."""

import asyncio
import random
import time

from broken import Broken
from database import Server
from instances import Instance
from report import Report

# How long a frozen instance still counts as answering: a balancer looks every second.
LONGEST_FREEZE = 12
# No fault begins so near to the end.
LAST = 1


class Faults:
    def __init__(self, instances: list[Instance], server: Server, database: str, chance: random.Random, report: Report):
        self.instances = instances
        self.server = server
        self.database = database
        self.chance = chance
        self.report = report
        self.frozen: list[asyncio.Task] = []

    async def strike_until(self, until: float) -> None:
        # In turn at first, and then by chance: a short run, too, has met them all.
        kinds = ["kill", "cut", "freeze", "database"]
        self.chance.shuffle(kinds)
        weighed = ["kill"] * 6 + ["cut"] * 7 + ["freeze"] * 5 + ["database"] * 2
        while True:
            await asyncio.sleep(self.chance.uniform(0.3, 1) if kinds else self.chance.uniform(0.6, 2.5))
            if time.monotonic() >= until - LAST:
                return
            kind = kinds.pop() if kinds else self.chance.choice(weighed)
            await getattr(self, f"_{kind}")(until)
            self.report.faults[kind] += 1

    def _free(self) -> Instance | None:
        """An instance that lives and is awake, if another one does too."""
        awake = [each for each in self.instances if each.lives() and not each.is_frozen]
        return self.chance.choice(awake) if len(awake) > 1 else None

    async def _kill(self, _until: float) -> None:
        instance = self.chance.choice([each for each in self.instances if each.lives()])
        await instance.kill()
        await asyncio.sleep(self.chance.uniform(0, 1.5))
        self.report.took("a start", await instance.start())

    async def _cut(self, _until: float) -> None:
        self.report.counts["connections cut"] += await self.server.cut_all(self.database)

    async def _freeze(self, until: float) -> None:
        instance = self._free()
        if instance is not None:
            longest = max(0.5, min(LONGEST_FREEZE, until - time.monotonic()))
            seconds = self.chance.uniform(min(2, longest), longest)
            self.frozen.append(asyncio.create_task(self._freeze_one(instance, seconds)))

    async def _freeze_one(self, instance: Instance, seconds: float) -> None:
        instance.freeze()
        await asyncio.sleep(seconds)
        instance.thaw()

    async def _database(self, _until: float) -> None:
        await self.server.stop()
        await asyncio.sleep(self.chance.uniform(0, 2))
        await self.server.start()

    async def end(self) -> None:
        """Everything runs again."""
        for task in self.frozen:
            task.cancel()
        for instance in self.instances:
            if not instance.lives():
                raise Broken(f"{instance.name} ended by itself:\n{instance.last_lines()}")
            instance.thaw()
