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
from invariant_violation import InvariantViolation
from postgres_server import PostgresServer
from report import Report

SCENARIOS = {"workload": workload.run, "replica": replica.run}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/multi_instance/run", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same choices (default: 1)")
    parser.add_argument("--seconds", type=float, default=60, help="duration; faults are active for half of it (default: 60)")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="keep the folder with settings and logs")
    parser.add_argument("scenario", nargs="*", help=f"{', '.join(SCENARIOS)}; default: all")
    given = parser.parse_args()
    if unknown := set(given.scenario) - set(SCENARIOS):
        parser.error(f"unknown scenario: {', '.join(unknown)}; known: {', '.join(SCENARIOS)}")
    if given.instances < 2:
        parser.error("at least 2 instances are required")
    return given


def causes(error: BaseException) -> list[BaseException]:
    """The failures in an exception group."""
    if isinstance(error, BaseExceptionGroup):
        return [cause for each in error.exceptions for cause in causes(each)]
    return [error]


def describe(error: BaseException) -> str:
    if isinstance(error, InvariantViolation):
        return str(error)
    return "".join(traceback.format_exception(error))


async def main() -> int:
    given = options()
    # SIGTERM also ends the instances.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    folder = Path(tempfile.mkdtemp(prefix="corbie-multi-instance-"))
    report = Report()
    failures: list[str] = []
    server = await PostgresServer.primary()
    for name in given.scenario or SCENARIOS:
        (folder / name).mkdir()
        try:
            await SCENARIOS[name](given, server, folder / name, report)
        except Exception as error:
            failures += [f"{name}: {describe(each)}" for each in causes(error)]
    failures += report.exceeded_limits()
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
