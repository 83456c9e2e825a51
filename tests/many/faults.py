"""What is done to instances and to the database while clients use them. The choices follow a seed."""

import asyncio
import random
import time
from collections.abc import Callable

from broken import Broken
from database import Server
from instances import Instance
from report import Report

# Fault kinds with their weights.
KINDS = {"kill": 6, "cut all": 4, "cut some": 4, "freeze": 5, "database": 2}
# Maximum duration of a freeze in seconds. The proxy skips a frozen instance, as a load balancer with a probe would.
LONGEST_FREEZE = 12
# No random fault starts this close to the end.
LAST = 1
# Extra time on a slow machine until every kind has occurred and the minimum amounts are reached.
MOST_LONGER = 60


class Faults:
    def __init__(self, instances: list[Instance], server: Server, database: str, chance: random.Random, report: Report):
        self.instances = instances
        self.server = server
        self.database = database
        self.chance = chance
        self.report = report
        self.frozen: list[asyncio.Task] = []

    async def strike(self, until: float, is_enough: Callable[[], bool], over: asyncio.Event) -> None:
        """Strikes until then, and for longer until every kind has struck and clients have done enough."""
        # Each kind once at first, then randomly.
        owed = list(KINDS)
        self.chance.shuffle(owed)
        while True:
            await asyncio.sleep(self.chance.uniform(0.3, 1) if owed else self.chance.uniform(0.6, 2.5))
            now = time.monotonic()
            if now >= until - LAST and (not owed and is_enough() or now >= until + MOST_LONGER):
                break
            kind = owed.pop() if owed else self.chance.choices(list(KINDS), list(KINDS.values()))[0]
            if await self._strike_once(kind, until):
                self.report.faults[kind] += 1
            elif not self.report.faults[kind]:
                owed.insert(0, kind)
        await asyncio.sleep(max(0, until - time.monotonic()))
        self._end()
        over.set()

    async def _strike_once(self, kind: str, until: float) -> bool:
        """Whether there was anything to strike."""
        match kind:
            case "kill":
                return await self._kill()
            case "cut all":
                return self._was_cut(await self.server.cut_all(self.database))
            case "cut some":
                return self._was_cut(await self.server.cut_some(self.database, self.chance))
            case "freeze":
                return self._freeze(until)
            case "database":
                return await self._stop_database()
            case _:
                raise ValueError(kind)

    async def _kill(self) -> bool:
        instance = self.chance.choice([each for each in self.instances if each.lives()])
        await instance.kill()
        await asyncio.sleep(self.chance.uniform(0, 1.5))
        self.report.took("a start", await instance.start())
        return True

    def _was_cut(self, connections: int) -> bool:
        self.report.counts["connections cut"] += connections
        return connections > 0

    def _freeze(self, until: float) -> bool:
        """Freezes an instance that is awake for a while, if another one is awake too."""
        awake = [each for each in self.instances if each.lives() and not each.is_frozen]
        if len(awake) < 2:
            return False
        longest = max(0.5, min(LONGEST_FREEZE, until - time.monotonic()))
        seconds = self.chance.uniform(min(2, longest), longest)
        self.frozen.append(asyncio.create_task(self._freeze_one(self.chance.choice(awake), seconds)))
        return True

    async def _freeze_one(self, instance: Instance, seconds: float) -> None:
        instance.freeze()
        await asyncio.sleep(seconds)
        instance.thaw()

    async def _stop_database(self) -> bool:
        await self.server.stop()
        await asyncio.sleep(self.chance.uniform(0, 2))
        await self.server.start()
        return True

    def _end(self) -> None:
        """Everything runs again."""
        for task in self.frozen:
            task.cancel()
        for instance in self.instances:
            if not instance.lives():
                raise Broken(f"{instance.name} ended by itself:\n{instance.last_lines()}")
            instance.thaw()
