"""The PostgreSQL server that tests/postgres/server has started for this test, and what is done to it."""

import asyncio
import os
import random
from pathlib import Path

from broken import Broken

SCRIPTS = Path(__file__).resolve().parent.parent / "postgres"


async def _output(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    if process.returncode:
        raise Broken(f"{' '.join(command[:3])}: {err.decode(errors='replace').strip()}")
    return out.decode().strip()


class Server:
    """A server of a folder: the primary, or a replica of it."""

    def __init__(self, folder: str, url: str, psql: str) -> None:
        self.folder = folder
        self._url = url
        self._psql = psql

    @staticmethod
    async def primary() -> "Server":
        folder = os.environ["CORBIE_TEST_POSTGRES_FOLDER"]
        script = f'source "{SCRIPTS}/shared.bash" && programs "{folder}" "$(<"{folder}/data/PG_VERSION")"'
        bin = await _output("bash", "-c", script)
        return Server(folder, os.environ["CORBIE_TEST_POSTGRES"], f"{bin}/psql")

    async def replica(self) -> "Server":
        url = (await _output(str(SCRIPTS / "replica"), self.folder)).splitlines()[-1]
        return Server(f"{self.folder}/replica1", url, self._psql)

    def url(self, database: str) -> str:
        return self._url.rsplit("/", 1)[0] + f"/{database}"

    async def ask(self, sql: str, database: str = "postgres") -> str:
        options = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]
        where = [f"--host={self.folder}", "--username=postgres", f"--command={sql}", database]
        return await _output(self._psql, *options, *where)

    async def cut_all(self, database: str, patience: float = 0) -> int:
        """Ends every connection to a database, and waits so long for each to be gone; gives how many."""
        return await self._cut(f"datname = '{database}'", patience)

    async def cut_some(self, database: str, chance: random.Random) -> int:
        """Ends some connections to a database and leaves others, where there are several; gives how many were ended."""
        # In start order: the same seed chooses the same connections, as far as they are the same.
        sql = f"SELECT pid FROM pg_stat_activity WHERE datname = '{database}' ORDER BY backend_start, pid"
        processes = (await self.ask(sql)).split()
        if not processes:
            return 0
        some = chance.sample(processes, chance.randint(1, max(1, len(processes) - 1)))
        return await self._cut(f"datname = '{database}' AND pid IN ({', '.join(some)})")

    async def _cut(self, which: str, patience: float = 0) -> int:
        # Not in the WHERE clause, which the planner may evaluate for every connection.
        ended = f"pg_terminate_backend(pid, {round(patience * 1000)})"
        return int(await self.ask(f"SELECT count(*) FILTER (WHERE {ended}) FROM pg_stat_activity WHERE {which}"))

    async def stop(self) -> None:
        """As if its machine were lost."""
        await _output(str(SCRIPTS / "server"), "stop", self.folder)

    async def start(self) -> None:
        # The server keeps running; its output goes to the log, not into a pipe that would block.
        process = await asyncio.create_subprocess_exec(
            str(SCRIPTS / "server"), "start", self.folder, stdout=asyncio.subprocess.DEVNULL
        )
        if await process.wait():
            raise Broken(f"the server of {self.folder} does not start")
