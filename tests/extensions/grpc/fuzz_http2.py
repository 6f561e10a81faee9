"""Raw frames of HTTP/2 at a gRPC server: whatever they say, one call may fail, and the next is answered.

The library reads them (grpcio), so this is a claim about what is done when its loop ends (extensions/grpc/server.py).
"""

import asyncio
import contextlib
import functools
import socket
import threading
from collections.abc import Callable

from tests.extensions.grpc.http2 import ENDS_THE_LOOP, PREFACE, frame, grpc_call
from tests.lab.fuzz.targets import Target
from tsctl.daemon.core.clock import LoopClock
from tsctl.daemon.extensions.grpc.health import SERVICE, HealthService
from tsctl.daemon.extensions.grpc.server import Calls, GrpcServer, load_grpc, methods_of
from tsctl.daemon.extensions.grpc.waiting.arrivals import Arrivals
from tsctl.daemon.extensions.grpc.waiting.incoming_messages import Incoming
from tsctl.daemon.extensions.grpc.waiting.writing import Writing
from tsctl.daemon.http.bounds.receiving import ReceiveBudget
from tsctl.daemon.http.bounds.sending import SendBudget
from tsctl.daemon.models.registry import Registry

PATIENCE = 4.0  # seconds, for a call
_CHECK = f"/{SERVICE}/Check"
_BEGIN = len(PREFACE)
_ONE_CALL = grpc_call(_CHECK.encode())[_BEGIN:]


class Running:
    """A server in a thread, which begins again whenever it ends."""

    def __init__(self) -> None:
        self._begun = threading.Event()
        self.port = 0
        self._over: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="gRPC", daemon=True)
        self._thread.start()
        assert self._begun.wait(PATIENCE)
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 50),
                   ("grpc.max_reconnect_backoff_ms", 100)]  # fmt: skip
        self._channel = functools.partial(load_grpc().insecure_channel, f"127.0.0.1:{self.port}", options)

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: None)  # grpc leaves some of its own unread
        grpc, clock = load_grpc(), LoopClock(loop)
        methods = methods_of(HealthService(Registry(), lambda: True, ()), open=True)
        incoming = Incoming(clock, 1 << 20, ReceiveBudget(), 60.0, 75.0)
        calls = Calls(grpc, methods, clock, Arrivals(clock), Writing(SendBudget(), clock), incoming)
        server = GrpcServer(grpc, calls, 1 << 20)
        (self.port,) = server.bind([("127.0.0.1", 0)])
        over = asyncio.Event()
        self._over = lambda: loop.call_soon_threadsafe(over.set)
        serving = loop.create_task(self._begin_again(server))
        await over.wait()
        serving.cancel()
        await server.close(0.0)

    async def _begin_again(self, server: GrpcServer) -> None:
        while True:
            with contextlib.suppress(Exception):
                await server.begin()
                self._begun.set()
                await server.ended()
            await asyncio.sleep(0.01)

    def close(self) -> None:
        """Stop serving: other tests fork processes, which threads must not outlive."""
        self._over()
        self._thread.join(PATIENCE)

    def ask(self) -> bytes:
        """Return the answer of a call, or of a second one: the first may reach a server whose loop has ended."""
        for last in (False, True):
            try:
                with self._channel() as channel:
                    answer: bytes = channel.unary_unary(_CHECK)(b"", wait_for_ready=True, timeout=PATIENCE)
                    return answer
            except load_grpc().RpcError:
                if last:
                    raise
        raise AssertionError

    def tell(self, data: bytes) -> None:
        """Send frames on a connection, and wait for its end."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0) as client:
            client.sendall(PREFACE + data)
            client.shutdown(socket.SHUT_WR)
            while client.recv(1 << 16):
                pass


_running = functools.cache(Running)


def close() -> None:
    """Stop what `check` has started."""
    if _running.cache_info().currsize:
        _running().close()
        _running.cache_clear()


def check(data: bytes) -> None:
    running = _running()

    running.tell(data)

    assert running.ask() == b"\x08\x01"


TARGET = Target(
    check,
    [
        _ONE_CALL,
        ENDS_THE_LOOP[_BEGIN:],
        _ONE_CALL + frame(0, 1, 1, b"\0\0\0\0\0"),
        _ONE_CALL + frame(3, 0, 1, b"\0\0\0\x08"),
        frame(4, 0, 0, b"\0\x03\0\0\0\x01\0\x04\0\0\xff\xff") + frame(6, 0, 0, b"12345678") + _ONE_CALL,
        frame(4, 0, 0, b"") + frame(1, 1, 1, b"\x83\x86") + frame(9, 4, 1, b"\x04\x02/x\x01\x01x"),
        frame(4, 0, 0, b"") + frame(8, 0, 0, b"\x7f\xff\xff\xff") + frame(7, 0, 0, b"\0\0\0\0\0\0\0\0"),
    ],
    [
        b"/",
        b"\xc7",
        b"\x00\x00\x00\x04\x00\x00\x00\x00\x00",
        b"\x83",
        b"\x86",
        b"\x04",
        b"te",
        b"grpc-timeout",
        b"-bin",
    ],
    close,
)
