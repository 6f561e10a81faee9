"""How long the event loop's callbacks take, for every kind of body: `python -m tests.lab.benchmarks.callbacks`.

[--sizes 0.06,5,64] [--only WORD]

While one runs, nobody else is served. A real daemon, with workers, runs on asyncio's loop instead of uvloop's: its
callbacks are Python objects, each of which is timed in CPU time of the thread. Printed is, for each kind and size, what
was answered, after how many seconds, and the longest callback in ms. What the kernel takes to copy a body from its
socket does not count: that may be all of it. Of a body in chunks, whose size nobody knows before its end, and of one
that is recorded, one more copy is allowed (`copy`); what a callback takes beyond that is `over`.

The daemon is asked up to five times, and the best counts: what a busy machine or the garbage collector adds is not the
body's. For each field of each schema there is a body that is filled with it (schemas.py). Exit code 1 if a callback
takes over 5 ms more, or an answer is not the one that is expected. About ten minutes.
"""

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from asyncio import events
from pathlib import Path
from typing import Any

import grpc

from tests.e2e.served import Served, eventually
from tests.e2e.test_tensors import register
from tests.lab.benchmarks import schema_bodies
from tests.lab.benchmarks.bodies import KINDS, MIB, Asked

LIMIT = 5.0  # ms
ANSWERED = (200, 400, 413)  # of a body that is derived from a schema
_STATUSES = {
    grpc.StatusCode.INVALID_ARGUMENT: 400, grpc.StatusCode.RESOURCE_EXHAUSTED: 413, grpc.StatusCode.NOT_FOUND: 400,
    grpc.StatusCode.PERMISSION_DENIED: 400, grpc.StatusCode.INTERNAL: 500, grpc.StatusCode.UNAVAILABLE: 503,
}  # fmt: skip
TRIES = 5
_ASKED = "TSCTL_CALLBACKS_SOCKET"


class Longest:
    """The longest callback since it was asked for the last time; runs in the daemon."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.name = ""
        received = 0.0
        receive = socket.socket.recv_into

        def timed_receive(sock: socket.socket, *arguments: Any) -> int:
            nonlocal received
            began = time.thread_time()
            try:
                return receive(sock, *arguments)
            finally:
                received += time.thread_time() - began

        setattr(socket.socket, "recv_into", timed_receive)  # noqa: B010 - of another type
        handle_class: Any = events.Handle
        plain = handle_class._run

        def timed(handle: Any) -> None:
            nonlocal received
            callback = handle._callback
            received, began = 0.0, time.thread_time()
            plain(handle)
            spent = time.thread_time() - began - received
            if spent > self.seconds:
                self.seconds, self.name = spent, name_of(callback)

        handle_class._run = timed

    def tell(self, path: str) -> None:
        """Answer each connection with the longest, and forget it."""
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            listening.listen()
            while True:
                with listening.accept()[0] as peer:
                    seconds, self.seconds = self.seconds, 0.0
                    peer.sendall(f"{seconds * 1000} {self.name}".encode())


def name_of(callback: Any) -> str:
    owner: Any = getattr(callback, "__self__", None)
    called = owner.get_coro() if hasattr(owner, "get_coro") else getattr(callback, "func", callback)
    return str(called.__qualname__)


class _Buffered(type):
    """Recognises a protocol of asyncio's `BufferedProtocol` by its methods, as uvloop does: ours has no base class."""

    def __instancecheck__(cls, instance: object) -> bool:
        return hasattr(instance, "get_buffer")


def run_daemon(arguments: list[str]) -> int:
    import asyncio

    import uvloop

    from daemon.__main__ import main as daemon_main

    setattr(asyncio.protocols, "BufferedProtocol", _Buffered("BufferedProtocol", (), {}))  # noqa: B010 - of another type
    setattr(uvloop, "run", asyncio.run)  # noqa: B010 - of another type
    longest = Longest()
    threading.Thread(target=longest.tell, args=(os.environ[_ASKED],), daemon=True).start()
    return daemon_main(arguments)


def longest_of(path: str) -> tuple[float, str]:
    """Return the longest callback since the last call, in ms, and its name."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)
        milliseconds, _, name = peer.makefile().read().partition(" ")
    return float(milliseconds), name


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def copy_time(size: int) -> float:
    """Return what a copy of so many bytes costs, into memory that is fresh, in ms."""
    source = memoryview(bytearray(size))
    times = []
    for _ in range(3):
        began = time.thread_time()
        bytes(source)
        times.append((time.thread_time() - began) * 1000)
    return min(times)


def call(address: str, asked: Asked) -> tuple[int, float]:
    """Make a call over gRPC; return the HTTP status that its code stands for, and after how many seconds it ended."""
    began = time.perf_counter()
    with grpc.insecure_channel(address) as channel:
        try:
            channel.unary_unary(asked.method)(asked.pieces[0], timeout=600)
        except grpc.RpcError as error:
            return _STATUSES[error.code()], time.perf_counter() - began
    return 200, time.perf_counter() - began


def ask(served: Served, address: str, asked: Asked) -> tuple[int, float]:
    """Send a request; return the status of its answer, and after how many seconds it came."""
    if asked.method:
        return call(address, asked)
    if asked.control:
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(str(served.folder / "control.sock"))
    else:
        host, _, port = served.url.removeprefix("http://").rpartition(":")
        peer = socket.create_connection((host, int(port)))
    began = time.perf_counter()
    with peer:
        peer.settimeout(600)
        peer.sendall(asked.head)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent
            for piece in asked.pieces:
                peer.sendall(piece)
        answer = b""
        while b"\r\n\r\n" not in answer:
            data = peer.recv(65536)
            if not data:
                raise SystemExit(f"the daemon closed the connection: {asked.name}")
            answer += data
    return int(answer[9:12]), time.perf_counter() - began


def measure(served: Served, address: str, told: str, asked: Asked, allowed: float) -> bool:
    """Ask until the longest callback is within the limit, a few times at most; print the best, return whether it is."""
    best, name, status, seconds = float("inf"), "", 0, 0.0
    for _ in range(TRIES):
        longest_of(told)
        status, seconds = ask(served, address, asked)
        served.ask("/ping", method="GET")  # a later callback: the one that wrote the answer has ended
        found, called = longest_of(told)
        if found < best:
            best, name = found, called
        if best - allowed <= LIMIT:
            break
    kept = best - allowed <= LIMIT and (status == asked.status or (not asked.status and status in ANSWERED))
    print(
        f"{asked.name:<58}{asked.size / MIB:>7.2f}{status:>8}{seconds:>8.2f}{best:>9.2f}{allowed:>7.2f}"
        f"{max(0.0, best - allowed):>8.2f}  {'kept' if kept else 'PASSED':<7}{name}",
        flush=True,
    )
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", default="0.06,5,64", help="MiB")
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    kinds = {each.__name__.replace("_", " "): each for each in KINDS} | schema_bodies.KINDS
    sizes = [int(float(size) * MIB) for size in chosen.sizes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        told = f"{folder}/callbacks"
        environment = served.environment | {_ASKED: told}
        address = f"127.0.0.1:{free_port()}"
        command = [sys.executable, "-m", "tests.lab.benchmarks.callbacks", "daemon", "--background"]
        command += ["--grpc-address", address]
        daemon = subprocess.Popen(command, env=environment)
        try:
            eventually(lambda: served.run("status").returncode == 0, "the daemon started")
            served.note_address()
            served.register("sized")
            register(served, "INT32")
            served.register("takes_tensors", name="typed")
            served.register("sized", name="recorded")
            served.tsctl("set", "recorded", "--record-input")
            print(f"{'body':<58}{'MiB':>7}{'status':>8}{'s':>8}{'ms':>9}{'copy':>7}{'over':>8}")
            kept = True
            for size in sizes:
                copy = copy_time(size)
                for name, kind in kinds.items():
                    if chosen.only in name:
                        asked = kind(size)
                        kept = measure(served, address, told, asked, copy if asked.copied else 0.0) and kept
        finally:
            served.stop()
            daemon.wait(60)
    print("each callback keeps to 5 ms" if kept else "a callback takes longer than 5 ms, or an answer is another")
    return 0 if kept else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["daemon"]:
        sys.exit(run_daemon(sys.argv[2:]))
    sys.exit(main())
