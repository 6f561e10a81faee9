"""The least that a server of this kind does for a request, without any feature: `… bare STEP PORT`.

    answer   reads, parses, and writes one fixed answer
    batch    sends the bodies to a worker process over a socketpair, in batches of at most 8, and writes its answers

The other steps are as `batch`, and wake the worker in another way (`ways.py`). The event loop, the parser and the
encoding of frames are those of the daemon; the code is interpreted.
"""

import asyncio
import os
import struct
import sys
from typing import cast

import httptools
import msgspec
import uvloop

from tests.lab.benchmarks.layers.ways import WAYS, Way

STEPS = ("answer", *WAYS)
BATCH = 8
HEAD = (
    b"HTTP/1.1 200 OK\r\nx-request-id: 01234567-0123-4123-a123-0123456789ab\r\nPragma: no-cache\r\n"
    b"Cache-Control: no-cache; no-store, must-revalidate, private\r\nExpires: Thu, 01 Jan 1970 00:00:00 UTC\r\n"
    b"connection: keep-alive\r\ncontent-length: 3\r\n\r\n"
)
_encode, _decode = msgspec.msgpack.encode, msgspec.msgpack.decode


def frame(message: object) -> bytes:
    body = _encode(message)
    return struct.pack("<I", len(body)) + body


def work(way: Way) -> None:
    """Answer batches with the sizes of their bodies, until the other end closes."""
    while data := way.wait():  # one batch is on its way at a time: a frame comes whole
        way.answer(frame([b"%d" % len(body) for body in _decode(data[4:])]))


class Line:
    """The conversation with the worker: one batch at a time."""

    def __init__(self, way: Way) -> None:
        self.waiting: list[tuple[asyncio.Transport, bytes]] = []
        self._running: list[tuple[asyncio.Transport, bytes]] = []
        self._awake = False
        self._way = way

    def answered(self, data: bytes) -> None:
        ended, self._running = self._running, []
        for (client, _), answer in zip(ended, _decode(data[4:]), strict=True):
            if not client.is_closing():
                client.write(HEAD + answer)
        self.wake()

    def wake(self) -> None:
        if self.waiting and not self._running and not self._awake:
            self._awake = True
            asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        self._awake = False
        self._running, self.waiting = self.waiting[:BATCH], self.waiting[BATCH:]
        self._way.send(frame([body for _, body in self._running]))


class Client(asyncio.Protocol):
    """One client's connection; without a line, the answer is fixed."""

    def __init__(self, line: Line | None) -> None:
        self._line = line
        self._parser = httptools.HttpRequestParser(self)
        self._transport = cast(asyncio.Transport, None)
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body = body

    def on_message_complete(self) -> None:
        if self._line is None:
            self._transport.write(HEAD + b"100")
        else:
            self._line.waiting.append((self._transport, self._body))
            self._line.wake()


async def serve(port: int, way: Way | None) -> None:
    loop, line = asyncio.get_running_loop(), None
    if way is not None:
        line = Line(way)
        await way.attach(line.answered)
    server = await loop.create_server(lambda: Client(line), "127.0.0.1", port)
    await server.serve_forever()


def main(step: str, port: int) -> None:
    way = WAYS[step]() if step in WAYS else None
    if way is not None:
        if os.fork() == 0:
            way.begin()
            work(way)
            os._exit(0)
        way.forked()
    uvloop.run(serve(port, way))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
