"""People who change the taxonomy that all instances share, each a line of its own: what was saved stays."""

import asyncio
import random
import re
import time

from broken import Broken
from instances import Instance
from mcp import Caller
from report import Report

# Documented staleness (docs/postgres.md): without faults, all instances use a saved taxonomy within this time.
USED_WITHIN = 1
# Faults lose notifications, so one second is too short: the LISTEN connection is restored within 4 seconds of the last
# fault, and a poll catches up within 4 more.
SAME_WITHIN = 8
# How long to wait for a late result, to report the delay.
PATIENCE = 20


class Editor:
    def __init__(self, number: int, caller: Caller, chance: random.Random) -> None:
        self.number = number
        self.caller = caller
        self.chance = chance
        # The last acknowledged and the last sent version.
        self.saved = 0
        self.sent = 0
        # Versions rejected because another editor was faster.
        self.refused: set[int] = set()

    def name(self, count: int) -> str:
        return f"editor{self.number}-{count}"

    async def go_on(self, over: asyncio.Event) -> None:
        while not over.is_set():
            await self.change()
            await asyncio.sleep(self.chance.uniform(0.1, 0.6))

    async def change(self) -> None:
        """Puts its next number in the place of its last."""
        read = await self.caller.call("get_taxonomy", {})
        if read.kind != "said":
            return
        lines = [line for line in read.said["text"].splitlines() if f"editor{self.number}-" not in line]
        self.sent += 1
        lines.append(f"  - {{name: {self.name(self.sent)}, description: Changed often, words: [word{self.number}]}}")
        arguments = {"text": "\n".join(lines) + "\n", "version": read.said["version"]}
        outcome = await self.caller.call("save_taxonomy", arguments)
        if outcome.kind != "said":
            return
        if outcome.said["saved"]:
            self.saved = self.sent
            self.caller.counts["taxonomies saved"] += 1
        elif outcome.said["reason"] not in ("changed", "away"):
            raise Broken(f"a taxonomy that is right is not saved: {outcome.said}")
        else:
            if outcome.said["reason"] == "changed":
                self.refused.add(self.sent)
            self.caller.counts[f"taxonomies not saved: {outcome.said['reason']}"] += 1

    def check(self, text: str) -> None:
        """What was acknowledged is there, or what was sent after that."""
        own = [int(number) for number in re.findall(rf"editor{self.number}-(\d+)", text)]
        if self.refused & set(own):
            raise Broken(f"editor {self.number} was told that {own} was not saved, and it is there")
        if len(own) > 1 or not self.saved <= max(own, default=0) <= self.sent:
            raise Broken(f"editor {self.number} has saved {self.saved} and sent {self.sent}, and there is {own}")


async def _used(instance: Instance) -> tuple[list[str], str]:
    """The categories with their numbers, those that are gone included, and the text."""
    listed = await instance.caller().must("list_categories", {})
    return listed["categories"], (await instance.caller().must("get_taxonomy", {}))["text"]


async def agree(instances: list[Instance], over: asyncio.Event, report: Report) -> None:
    """Soon after the last fault all instances use the same taxonomy."""
    await over.wait()
    begun = time.monotonic()
    while True:
        used = await asyncio.gather(*(_used(each) for each in instances))
        if all(each == used[0] for each in used):
            break
        if time.monotonic() > begun + PATIENCE:
            raise Broken(f"instances use different categories {PATIENCE} s after the last fault: {used}")
        await asyncio.sleep(0.05)
    report.took("all instances use the same taxonomy after faults", time.monotonic() - begun, SAME_WITHIN)


async def measure(editors: list[Editor], instances: list[Instance], report: Report) -> None:
    """What is saved through one instance is used by all, beside everything that was acknowledged under faults."""
    for number, instance in enumerate(instances):
        await _measure_one(Editor(100 + number, instance.caller(), random.Random(number)), instances, report)
    for instance in instances:
        text = (await _used(instance))[1]
        for editor in editors:
            editor.check(text)
    saved, times = report.counts["taxonomies saved"], report.times["all instances use a taxonomy that was saved"]
    report.phase(f"together: {saved} taxonomies saved, all use the last; one more is used after {max(times):.2f} s")


async def _measure_one(editor: Editor, instances: list[Instance], report: Report) -> None:
    await editor.change()
    if editor.saved == 0:
        raise Broken("a taxonomy cannot be saved, with nothing broken")
    begun = time.monotonic()

    async def used_by(instance: Instance) -> None:
        while editor.name(editor.saved) not in (await _used(instance))[0]:
            if time.monotonic() > begun + PATIENCE:
                raise Broken(f"{instance.name} does not use a taxonomy that was saved {PATIENCE} s ago")
            await asyncio.sleep(0.02)

    await asyncio.gather(*(used_by(each) for each in instances))
    report.took("all instances use a taxonomy that was saved", time.monotonic() - begun, USED_WITHIN)
