"""Client that edits the shared taxonomy, each client its own line: acknowledged edits are never lost."""

import asyncio
import random
import re
import time

from instances import Instance
from invariant_violation import InvariantViolation
from mcp_client import McpClient
from report import Report

# Documented staleness (docs/postgres.md): without faults, all instances use a saved taxonomy within this time.
MAX_STALENESS = 1
# Faults lose notifications, so one second is too short: the LISTEN connection is restored within 4 seconds of the last
# fault, and a poll catches up within 4 more.
MAX_STALENESS_AFTER_FAULTS = 8
# How long to wait for a late result, to report the delay.
MAX_WAIT = 20
AGREEMENT = "all instances use the same taxonomy after faults"
PROPAGATION = "all instances use a saved taxonomy"


class TaxonomyClient:
    def __init__(self, number: int, mcp_client: McpClient, rng: random.Random) -> None:
        self.number = number
        self.mcp_client = mcp_client
        self.rng = rng
        # The last acknowledged and the last sent version.
        self.acknowledged = 0
        self.sent = 0
        # Versions rejected because another client was faster.
        self.rejected: set[int] = set()

    def category_name(self, version: int) -> str:
        return f"editor{self.number}-{version}"

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await self.edit()
            await asyncio.sleep(self.rng.uniform(0.1, 0.6))

    async def edit(self) -> None:
        """Replaces the client's category by its next version."""
        current = await self.mcp_client.call("get_taxonomy", {})
        if current.kind != "answered":
            return
        lines = [line for line in current.result["text"].splitlines() if f"editor{self.number}-" not in line]
        self.sent += 1
        name = self.category_name(self.sent)
        lines.append(f"  - {{name: {name}, description: Changed often, words: [word{self.number}]}}")
        arguments = {"text": "\n".join(lines) + "\n", "version": current.result["version"]}
        outcome = await self.mcp_client.call("save_taxonomy", arguments)
        if outcome.kind != "answered":
            return
        if outcome.result["saved"]:
            self.acknowledged = self.sent
            self.mcp_client.counts["taxonomies saved"] += 1
            return
        reason = outcome.result["reason"]
        if reason not in ("conflict", "unavailable"):
            raise InvariantViolation(f"a valid taxonomy is not saved: {outcome.result}")
        if reason == "conflict":
            self.rejected.add(self.sent)
        self.mcp_client.counts[f"taxonomies not saved: {reason}"] += 1

    def check(self, text: str) -> None:
        """The taxonomy contains the acknowledged version, or a version sent after it."""
        versions = [int(number) for number in re.findall(rf"editor{self.number}-(\d+)", text)]
        if self.rejected & set(versions):
            raise InvariantViolation(f"editor {self.number}: a version of {versions} was rejected, but is saved")
        if len(versions) > 1 or not self.acknowledged <= max(versions, default=0) <= self.sent:
            raise InvariantViolation(
                f"editor {self.number}: {self.acknowledged} acknowledged, {self.sent} sent, but saved: {versions}"
            )


async def _current(instance: Instance) -> tuple[list[str], str]:
    """The categories in order, removed ones included, and the text."""
    listed = await instance.mcp_client().call_checked("list_categories", {})
    return listed["categories"], (await instance.mcp_client().call_checked("get_taxonomy", {}))["text"]


async def check_agreement(instances: list[Instance], stop: asyncio.Event, report: Report) -> None:
    """Soon after the last fault all instances use the same taxonomy."""
    await stop.wait()
    started = time.monotonic()
    while True:
        taxonomies = await asyncio.gather(*(_current(each) for each in instances))
        if all(each == taxonomies[0] for each in taxonomies):
            break
        if time.monotonic() > started + MAX_WAIT:
            raise InvariantViolation(f"instances still differ {MAX_WAIT} s after the last fault: {taxonomies}")
        await asyncio.sleep(0.05)
    report.record_duration(AGREEMENT, time.monotonic() - started, MAX_STALENESS_AFTER_FAULTS)


async def check_propagation(clients: list[TaxonomyClient], instances: list[Instance], report: Report) -> None:
    """A taxonomy saved through one instance is used by all, together with all edits acknowledged during faults."""
    for number, instance in enumerate(instances):
        client = TaxonomyClient(100 + number, instance.mcp_client(), random.Random(number))
        await _measure_propagation(client, instances, report)
    for instance in instances:
        text = (await _current(instance))[1]
        for client in clients:
            client.check(text)
    saved, seconds = report.counts["taxonomies saved"], max(report.durations[PROPAGATION])
    report.phase(f"workload: {saved} taxonomies saved, none lost; propagation takes up to {seconds:.2f} s")


async def _measure_propagation(client: TaxonomyClient, instances: list[Instance], report: Report) -> None:
    await client.edit()
    if client.acknowledged == 0:
        raise InvariantViolation("a taxonomy cannot be saved although no fault is active")
    started = time.monotonic()

    async def wait_until_used(instance: Instance) -> None:
        while client.category_name(client.acknowledged) not in (await _current(instance))[0]:
            if time.monotonic() > started + MAX_WAIT:
                raise InvariantViolation(f"{instance.name} does not use a taxonomy saved {MAX_WAIT} s ago")
            await asyncio.sleep(0.02)

    await asyncio.gather(*(wait_until_used(each) for each in instances))
    report.record_duration(PROPAGATION, time.monotonic() - started, MAX_STALENESS)
