"""Injects faults into instances and the database while clients use them. The choices follow a seed."""

import asyncio
import random
import time
from collections.abc import Callable

from instances import Instance
from invariant_violation import InvariantViolation
from postgres_server import PostgresServer
from report import Report

# Fault kinds with their weights.
FAULT_WEIGHTS = {"kill": 6, "terminate all": 4, "terminate some": 4, "pause": 5, "database": 2}
# Maximum duration of a pause in seconds. The proxy skips a paused instance, as a load balancer with a probe would.
MAX_PAUSE = 12
# No random fault starts this close to the end.
QUIET_PERIOD = 1
# Extra time on a slow machine until every kind has occurred and the minimum amounts are reached.
MAX_EXTENSION = 60


class FaultInjector:
    def __init__(
        self, instances: list[Instance], server: PostgresServer, database: str, rng: random.Random, report: Report
    ) -> None:
        self.instances = instances
        self.server = server
        self.database = database
        self.rng = rng
        self.report = report
        self.pauses: list[asyncio.Task] = []

    async def run(self, deadline: float, is_enough: Callable[[], bool], stop: asyncio.Event) -> None:
        """Injects faults until the deadline, and longer until every kind has occurred and clients were active enough."""
        # Each kind once at first, then randomly.
        pending = list(FAULT_WEIGHTS)
        self.rng.shuffle(pending)
        while True:
            await asyncio.sleep(self.rng.uniform(0.3, 1) if pending else self.rng.uniform(0.6, 2.5))
            now = time.monotonic()
            is_complete = not pending and is_enough()
            if now >= deadline - QUIET_PERIOD and (is_complete or now >= deadline + MAX_EXTENSION):
                break
            if pending:
                kind = pending.pop()
            else:
                kind = self.rng.choices(list(FAULT_WEIGHTS), list(FAULT_WEIGHTS.values()))[0]
            if await self._inject(kind, deadline):
                self.report.faults[kind] += 1
            elif not self.report.faults[kind]:
                pending.insert(0, kind)
        await asyncio.sleep(max(0, deadline - time.monotonic()))
        self._heal()
        stop.set()

    async def _inject(self, kind: str, deadline: float) -> bool:
        """Injects one fault; returns whether it had a target."""
        match kind:
            case "kill":
                return await self._kill()
            case "terminate all":
                return self._count_terminated(await self.server.terminate_all(self.database))
            case "terminate some":
                return self._count_terminated(await self.server.terminate_some(self.database, self.rng))
            case "pause":
                return self._pause(deadline)
            case "database":
                return await self._restart_database()
            case _:
                raise ValueError(kind)

    async def _kill(self) -> bool:
        instance = self.rng.choice([each for each in self.instances if each.is_running()])
        await instance.kill()
        await asyncio.sleep(self.rng.uniform(0, 1.5))
        self.report.record_duration("start of an instance", await instance.start())
        return True

    def _count_terminated(self, connections: int) -> bool:
        self.report.counts["connections terminated"] += connections
        return connections > 0

    def _pause(self, deadline: float) -> bool:
        """Pauses an instance for some seconds, if at least one other instance is active."""
        active = [each for each in self.instances if each.is_running() and not each.is_paused]
        if len(active) < 2:
            return False
        longest = max(0.5, min(MAX_PAUSE, deadline - time.monotonic()))
        seconds = self.rng.uniform(min(2, longest), longest)
        self.pauses.append(asyncio.create_task(self._pause_one(self.rng.choice(active), seconds)))
        return True

    async def _pause_one(self, instance: Instance, seconds: float) -> None:
        instance.pause()
        await asyncio.sleep(seconds)
        instance.resume()

    async def _restart_database(self) -> bool:
        await self.server.stop()
        await asyncio.sleep(self.rng.uniform(0, 2))
        await self.server.start()
        return True

    def _heal(self) -> None:
        """Resumes all instances."""
        for task in self.pauses:
            task.cancel()
        for instance in self.instances:
            if not instance.is_running():
                raise InvariantViolation(f"{instance.name} exited:\n{instance.log_tail()}")
            instance.resume()
