"""Our listener on a port, without the rest of a daemon; and a client that uploads to it."""

import asyncio
import contextlib
import http.client
import socket
import threading
from collections.abc import Mapping

import uvloop

from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.clock import LoopClock
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.listener import Listener
from tsctl.daemon.http.messages import Response


class Backend:
    """Our listener on a port of its own, in a thread; `seen` has each request that it was told of."""

    def __init__(self, max_body: int = 64 * 1024**2) -> None:
        self.seen: list[tuple[str, str, bytes]] = []
        self._loop = uvloop.new_event_loop()
        limits = HttpLimits(max_body=max_body)
        listener = Listener(self._tell, limits, LoopClock(self._loop), storage=Arena())
        listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = listening.getsockname()[1]
        self._server = self._loop.run_until_complete(self._loop.create_server(listener.accept, sock=listening))
        self._listener = listener
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def _tell(self, exchange: Exchange) -> None:
        request = exchange.request
        self.seen.append((request.method, request.target, bytes(request.body)))
        exchange.respond(Response(200, bytes(request.body) or b"nothing", [("Seen", request.target)]))

    def stop(self) -> None:
        async def end() -> None:
            self._server.close()
            self._listener.abort()

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def upload(
    client: http.client.HTTPConnection, megabytes: int, *, is_chunked: bool, headers: Mapping[str, str]
) -> tuple[int, str]:
    """Send a body as curl and requests do: where the server takes no more, look for its answer."""
    length = {} if is_chunked else {"Content-Length": str(megabytes * 1024**2)}
    pieces = (bytes(1024**2) for _ in range(megabytes))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        client.request("POST", "/", pieces, {**length, **headers}, encode_chunked=is_chunked)
    answer = client.getresponse()
    return answer.status, answer.read().decode()
