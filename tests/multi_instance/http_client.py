"""Minimal HTTP/1.1 client: one request per connection, so that the proxy distributes requests over instances."""

import asyncio
import json
from dataclasses import dataclass

Address = tuple[str, int]
# Exceptions of a broken connection.
CONNECTION_ERRORS = (OSError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError)


@dataclass
class HttpResponse:
    status: int
    headers: dict[str, str]
    body: bytes

    def text(self) -> str:
        return self.body.decode(errors="replace")


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Reads the status line and the headers."""
    status_line = await _read_line(reader)
    headers = {}
    while line := await _read_line(reader):
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return int(status_line.split(" ")[1]), headers


async def read_chunks(reader: asyncio.StreamReader):
    """Yields the chunks of a body with chunked transfer encoding."""
    while size := int(await _read_line(reader), 16):
        chunk = await reader.readexactly(size)
        await reader.readexactly(2)
        yield chunk


async def _read_line(reader: asyncio.StreamReader) -> str:
    line = await reader.readuntil(b"\r\n")
    return line[:-2].decode(errors="replace")


async def send_request(address: Address, method: str, path: str, headers: dict[str, str], body: object = None):
    """Sends a request on a new connection; returns its reader and writer."""
    reader, writer = await asyncio.open_connection(*address)
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", f"Host: {address[0]}:{address[1]}", f"Content-Length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
    return reader, writer


async def request(
    address: Address, method: str, path: str, headers: dict[str, str], body: object = None, timeout: float = 20
) -> HttpResponse:
    """Sends a request and returns its response; raises one of `CONNECTION_ERRORS` without one."""
    writer = None
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await send_request(address, method, path, {**headers, "Connection": "close"}, body)
            status, response_headers = await read_head(reader)
            if response_headers.get("transfer-encoding", "").lower() == "chunked":
                data = b"".join([chunk async for chunk in read_chunks(reader)])
            else:
                data = await reader.readexactly(int(response_headers.get("content-length", "0")))
            return HttpResponse(status, response_headers, data)
    finally:
        if writer is not None:
            writer.close()
