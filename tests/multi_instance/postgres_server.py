"""The PostgreSQL server that tests/postgres/server has started for this test, and its replicas."""

import asyncio
import os
import random
from pathlib import Path

from invariant_violation import InvariantViolation

SCRIPTS = Path(__file__).resolve().parent.parent / "postgres"


async def _output(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    if process.returncode:
        raise InvariantViolation(f"{' '.join(command[:3])}: {err.decode(errors='replace').strip()}")
    return out.decode().strip()


class PostgresServer:
    """A server with its folder: the primary, or a replica of it."""

    def __init__(self, folder: str, url: str, psql: str) -> None:
        self.folder = folder
        self._url = url
        self._psql = psql

    @staticmethod
    async def primary() -> "PostgresServer":
        folder = os.environ["CORBIE_TEST_POSTGRES_FOLDER"]
        script = f'source "{SCRIPTS}/shared.bash" && programs "{folder}" "$(<"{folder}/data/PG_VERSION")"'
        bin = await _output("bash", "-c", script)
        return PostgresServer(folder, os.environ["CORBIE_TEST_POSTGRES"], f"{bin}/psql")

    async def create_replica(self) -> "PostgresServer":
        url = (await _output(str(SCRIPTS / "replica"), self.folder)).splitlines()[-1]
        return PostgresServer(f"{self.folder}/replica1", url, self._psql)

    def url(self, database: str) -> str:
        return self._url.rsplit("/", 1)[0] + f"/{database}"

    async def query(self, sql: str, database: str = "postgres") -> str:
        options = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]
        connection = [f"--host={self.folder}", "--username=postgres", f"--command={sql}", database]
        return await _output(self._psql, *options, *connection)

    async def terminate_all(self, database: str, timeout: float = 0) -> int:
        """Terminates every connection to a database, waiting up to the timeout for each; returns their number."""
        return await self._terminate(f"datname = '{database}'", timeout)

    async def terminate_some(self, database: str, rng: random.Random) -> int:
        """Terminates some connections to a database but not all, if there are several; returns their number."""
        # In start order: the same seed chooses the same connections, as far as they are the same.
        sql = f"SELECT pid FROM pg_stat_activity WHERE datname = '{database}' ORDER BY backend_start, pid"
        processes = (await self.query(sql)).split()
        if not processes:
            return 0
        sample = rng.sample(processes, rng.randint(1, max(1, len(processes) - 1)))
        return await self._terminate(f"datname = '{database}' AND pid IN ({', '.join(sample)})")

    async def _terminate(self, condition: str, timeout: float = 0) -> int:
        # Not in the WHERE clause, which the planner may evaluate for every connection.
        terminate = f"pg_terminate_backend(pid, {round(timeout * 1000)})"
        sql = f"SELECT count(*) FILTER (WHERE {terminate}) FROM pg_stat_activity WHERE {condition}"
        return int(await self.query(sql))

    async def stop(self) -> None:
        """Stops the server as if its machine had failed."""
        await _output(str(SCRIPTS / "server"), "stop", self.folder)

    async def start(self) -> None:
        # The server keeps running; its output goes to the log, not into a pipe that would block.
        process = await asyncio.create_subprocess_exec(
            str(SCRIPTS / "server"), "start", self.folder, stdout=asyncio.subprocess.DEVNULL
        )
        if await process.wait():
            raise InvariantViolation(f"the server of {self.folder} does not start")
