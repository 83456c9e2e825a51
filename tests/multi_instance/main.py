"""Several instances of corbie on one PostgreSQL database. tests/multi_instance/run starts this, with a database."""

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import replica
import workload
from invariant_violation import Broken
from postgres_server import Server
from report import Report

SCENARIOS = {"together": workload.run, "replica": replica.run}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/multi_instance/run", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same choices (default: 1)")
    parser.add_argument("--seconds", type=float, default=60, help="faults strike for half of it (default: 60)")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="keep the folder of settings and logs")
    parser.add_argument("scenario", nargs="*", help=f"{', '.join(SCENARIOS)}; all of them if left out")
    given = parser.parse_args()
    if strangers := set(given.scenario) - set(SCENARIOS):
        parser.error(f"no scenario: {', '.join(strangers)}; there are {', '.join(SCENARIOS)}")
    if given.instances < 2:
        parser.error("one instance has nobody to share with; give 2 or more")
    return given


def causes(error: BaseException) -> list[BaseException]:
    """The failures in a group of them."""
    if isinstance(error, BaseExceptionGroup):
        return [cause for each in error.exceptions for cause in causes(each)]
    return [error]


def told(error: BaseException) -> str:
    if isinstance(error, Broken):
        return str(error)
    return "".join(traceback.format_exception(error))


async def main() -> int:
    given = options()
    # SIGTERM also ends the instances.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    folder = Path(tempfile.mkdtemp(prefix="corbie-many-"))
    report = Report()
    failures: list[str] = []
    server = await Server.primary()
    for name in given.scenario or SCENARIOS:
        (folder / name).mkdir()
        try:
            await SCENARIOS[name](given, server, folder / name, report)
        except Exception as error:
            failures += [f"{name}: {told(each)}" for each in causes(error)]
    failures += report.late()
    print(f"\nseed {given.seed}\n{report.table()}")
    if failures:
        for failure in dict.fromkeys(failures):
            print(f"seed {given.seed}: {failure[:4000]}", file=sys.stderr)
        print(f"kept: {folder}", file=sys.stderr)
    elif given.keep:
        print(f"kept: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failures else 0


sys.exit(asyncio.run(main()))
