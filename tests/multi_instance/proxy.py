"""Round-robin TCP proxy: each connection goes to the next instance that accepts it."""

import asyncio
from collections import Counter

import http_client
from instances import Instance

READ_SIZE = 1 << 16


class Proxy:
    def __init__(self, instances: list[Instance]) -> None:
        self.instances = instances
        self.connections = 0
        # Connections accepted per instance.
        self.accepted: Counter = Counter()
        self.address: http_client.Address = ("127.0.0.1", 0)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = self._server.sockets[0].getsockname()[:2]

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _connect(self):
        self.connections += 1
        count = len(self.instances)
        order = [self.instances[(self.connections + step) % count] for step in range(count)]
        # Instances that fail the probe of a load balancer come last.
        for instance in sorted(order, key=lambda each: each.is_paused):
            try:
                upstream = await asyncio.open_connection(*instance.address)
            except OSError:
                continue
            self.accepted[instance.name] += 1
            return upstream
        return None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = await self._connect()
        if upstream is None:
            writer.close()
            return
        upstream_reader, upstream_writer = upstream
        directions = [
            asyncio.create_task(_forward(reader, upstream_writer)),
            asyncio.create_task(_forward(upstream_reader, writer)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            upstream_writer.close()
            writer.close()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(READ_SIZE):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
