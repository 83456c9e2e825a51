"""Latency of list-change notifications: subscribers at every instance receive changes made through any other one."""

import asyncio
import time
from pathlib import Path

import document_text
from instances import Instance
from invariant_violation import InvariantViolation
from report import Report
from subscription_client import SubscriptionClient

# Documented staleness (docs/postgres.md).
MAX_LATENCY = 1
# Every instance polls every 4 seconds: after this time, no notification belongs to an earlier change.
SETTLE_TIME = 4.5
BASE = "notifications"
LATENCY = "notification latency at another instance"


class NotificationLatency:
    def __init__(self, instances: list[Instance]) -> None:
        self.instances = instances
        self.subscribers: list[SubscriptionClient] = []
        # Pending removals, with the instance to use.
        self.removals: list[tuple[Instance, str]] = []
        self.last_change = 0.0

    async def prepare(self, files: Path) -> None:
        """Subscribes at every instance and adds the documents that `measure` removes."""
        self.subscribers = [SubscriptionClient(each.address) for each in self.instances]
        await asyncio.gather(*(each.wait_until_subscribed() for each in self.subscribers))
        for number, instance in enumerate(self.instances):
            name = f"notification{number}.txt"
            (files / name).write_text(document_text.document_text(name, 1))
            arguments = {"file_path": str(files / name), "async": False, "knowledge_base": BASE}
            added = await instance.mcp_client().call_checked("knowledge-add", arguments)
            self.removals.append((instance, added["document_id"]))
        self.last_change = time.monotonic()

    async def measure_remaining(self, report: Report) -> None:
        while self.removals:
            await self.measure(report)
        for each in self.subscribers:
            each.stop()
        latencies = report.durations[LATENCY]
        if len(latencies) != len(self.instances) * (len(self.instances) - 1):
            raise InvariantViolation(f"only {len(latencies)} notifications among {len(self.instances)} instances")
        report.phase(f"workload: {len(latencies)} notifications, each within {max(latencies) * 1000:.0f} ms")

    async def measure(self, report: Report) -> None:
        """Removes a document through the next instance; the subscribers at the others are notified."""
        if not self.removals:
            return
        instance, document = self.removals.pop()
        others = [each for each in self.subscribers if each.address != instance.address]
        await asyncio.sleep(self.last_change + SETTLE_TIME - time.monotonic())
        for each in others:
            each.clear()
        started = time.monotonic()
        arguments = {"document_id": document, "confirm": True, "knowledge_base": BASE}
        await instance.mcp_client().call_checked("knowledge-remove", arguments)
        self.last_change = time.monotonic()
        for each in others:
            received_at = await each.wait_for_notification(MAX_LATENCY + SETTLE_TIME)
            if received_at is None:
                raise InvariantViolation(f"no notification at port {each.address[1]} of a removal via {instance.name}")
            report.record_duration(LATENCY, received_at - started, MAX_LATENCY)
