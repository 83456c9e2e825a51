"""HTTP/1.1 by hand: one request a connection, so that a proxy sends each one elsewhere."""

import asyncio
import json
from dataclasses import dataclass

Address = tuple[str, int]
# Exceptions of a broken connection.
LOST = (OSError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError)


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    def text(self) -> str:
        return self.body.decode(errors="replace")


async def head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    first = await _line(reader)
    headers = {}
    while line := await _line(reader):
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return int(first.split(" ")[1]), headers


async def pieces(reader: asyncio.StreamReader):
    """The body of a reply that comes piece by piece."""
    while size := int(await _line(reader), 16):
        piece = await reader.readexactly(size)
        await reader.readexactly(2)
        yield piece


async def _line(reader: asyncio.StreamReader) -> str:
    line = await reader.readuntil(b"\r\n")
    return line[:-2].decode(errors="replace")


async def open_request(address: Address, method: str, path: str, headers: dict[str, str], body: object = None):
    """Sends it, and gives the reader and the writer of its connection."""
    reader, writer = await asyncio.open_connection(*address)
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", f"Host: {address[0]}:{address[1]}", f"Content-Length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
    return reader, writer


async def exchange(
    address: Address, method: str, path: str, headers: dict[str, str], body: object = None, patience: float = 20
) -> Reply:
    """One request and its reply; one of `LOST` where none came."""
    writer = None
    try:
        async with asyncio.timeout(patience):
            reader, writer = await open_request(address, method, path, {**headers, "Connection": "close"}, body)
            status, found = await head(reader)
            if found.get("transfer-encoding", "").lower() == "chunked":
                data = b"".join([piece async for piece in pieces(reader)])
            else:
                data = await reader.readexactly(int(found.get("content-length", "0")))
            return Reply(status, found, data)
    finally:
        if writer is not None:
            writer.close()
