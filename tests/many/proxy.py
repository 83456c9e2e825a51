"""A load balancer as small as can be: each connection goes to the next instance that takes it."""

import asyncio
from collections import Counter

import wire
from instances import Instance


class Proxy:
    def __init__(self, instances: list[Instance]) -> None:
        self.instances = instances
        self.turn = 0
        # Connections accepted per instance.
        self.taken: Counter = Counter()
        self.address: wire.Address = ("127.0.0.1", 0)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = self._server.sockets[0].getsockname()[:2]

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _connect(self):
        self.turn += 1
        count = len(self.instances)
        order = [self.instances[(self.turn + step) % count] for step in range(count)]
        # Instances that fail the probe of a load balancer come last.
        for instance in sorted(order, key=lambda each: each.is_frozen):
            try:
                there = await asyncio.open_connection(*instance.address)
            except OSError:
                continue
            self.taken[instance.name] += 1
            return there
        return None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await self._connect()
        if there is None:
            writer.close()
            return
        ways = [asyncio.create_task(_pass(reader, there[1])), asyncio.create_task(_pass(there[0], writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            there[1].close()
            writer.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
