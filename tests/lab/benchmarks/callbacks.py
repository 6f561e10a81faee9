"""How long the event loop's callbacks take, for every kind of body: `python -m tests.lab.benchmarks.callbacks`.

[--sizes 0.06,5,64] [--only WORD,WORD]

While one runs, nobody else is served. A real daemon, with workers, runs on asyncio's loop instead of uvloop's: its
callbacks are Python objects, each of which is timed in CPU time of the thread. Printed is, for each kind and size, what
was answered, after how many seconds, and the longest callback in ms. What the kernel takes to copy a body from its
socket does not count: that may be all of it.

Of a message over gRPC the library makes two copies in one callback: pieces of what has come, and the message. So what
is allowed there (`copy`) are the same two copies, made by this program just then; what a callback takes beyond that is
`over`. The first message after a pause is copied into memory that the kernel has to clear, which costs five times as
much; then the daemon keeps the memory (trimming.py), and so does this program. `fresh` are the MiB of such memory in
the callback that is printed. Where an answer takes so long that the daemon gives the memory back each time, what the
kernel takes to clear memory for two copies is allowed, too.

The daemon is asked up to five times, and the best counts: what a busy machine or the garbage collector adds is not the
body's. Before the first time the daemon gives its free memory back: by how much its memory then grows, divided by the
body, is `grown`. For each field of each schema there is a body that is filled with it (schemas.py). Exit code 1 if a
callback takes over 5 ms more, memory grows by over `MOST_MEMORY` times the body and `BESIDE`, or an answer is not the
one that is expected. --only takes a part: `--only ModelInfer,Ping --sizes 64`. 5 MiB take a minute, and
64 MiB six, most of it for JSON.
"""

import argparse
import ctypes
import mmap
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from asyncio import events
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

from tests.e2e.served import Served, eventually
from tests.e2e.tensor_models import register
from tests.kit.shelf import modules
from tests.lab.benchmarks.bodies import MIB, Asked, kinds
from tests.lab.conformance.talk import Address, talk
from tsctl.daemon.http.bounds.trimming import QUIET, keep_memory

LIMIT = 5.0  # ms
MOST_MEMORY = 8  # bytes for each of a body
BESIDE = 16 * MIB  # bytes that small bodies may take besides
PIECE = 16 * 1024  # bytes: gRPC's frames
PAGE = resource.getpagesize()
ANSWERED = (200, 400, 413)  # of a body that is derived from a schema
TRIES = 5
_ASKED = "TSCTL_CALLBACKS_SOCKET"
Callback = tuple[float, int, str]
NONE: Callback = (0.0, 0, "")


class Longest:
    """The longest callback since it was asked for the last time: ms, the pages that the kernel had to clear, its name.

    Runs in the daemon.
    """

    def __init__(self) -> None:
        teller = threading.Thread(target=self.tell, args=(os.environ[_ASKED],), daemon=True)
        self.longest = NONE
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
            if teller.ident is None:  # not before, because the daemon prepares malloc before there are threads
                teller.start()
            callback = handle._callback
            cleared = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
            received, began = 0.0, time.thread_time()
            plain(handle)
            spent = (time.thread_time() - began - received) * 1000
            if spent > self.longest[0]:
                cleared = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - cleared
                self.longest = spent, cleared, name_of(callback)

        handle_class._run = timed

    def tell(self, path: str) -> None:
        """Answer each connection."""
        with Listener(path) as listening:
            while True:
                with listening.accept() as peer:
                    peer.send(self.answer(peer.recv()))

    def answer(self, asked: str) -> int | Callback:
        if asked == "trim":  # and forget the largest memory that there was
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5")
            return memory_of("VmRSS")
        if asked == "peak":
            return memory_of("VmHWM")
        longest, self.longest = self.longest, NONE
        return longest


def memory_of(what: str) -> int:
    """Return the bytes that the process has (`VmRSS`), or has had at most (`VmHWM`)."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{what}:")[2].split()[0]) * 1024


def copies_time(size: int) -> float:
    """Return what gRPC's two copies of a message of so many bytes cost, in ms."""
    source = memoryview(bytearray(size))
    times = []
    for _ in range(3):
        began = time.thread_time()
        b"".join([bytes(source[at : at + PIECE]) for at in range(0, size, PIECE)])
        times.append((time.thread_time() - began) * 1000)
    return min(times)


def name_of(callback: Any) -> str:
    owner: Any = getattr(callback, "__self__", None)
    called = owner.get_coro() if hasattr(owner, "get_coro") else getattr(callback, "func", callback)
    return str(getattr(called, "__qualname__", type(called).__qualname__))  # a compiled coroutine has no name


class _Buffered(type):
    """Recognises a protocol of asyncio's `BufferedProtocol` by its methods, as uvloop does: ours has no base class."""

    def __instancecheck__(cls, instance: object) -> bool:
        return hasattr(instance, "get_buffer")


def run_daemon(arguments: list[str]) -> int:
    import asyncio

    import uvloop

    from tsctl.daemon.__main__ import main as daemon_main

    setattr(asyncio.protocols, "BufferedProtocol", _Buffered("BufferedProtocol", (), {}))  # noqa: B010 - of another type
    setattr(uvloop, "run", asyncio.run)  # noqa: B010 - of another type
    Longest()
    return daemon_main(arguments)


def clearing_time() -> float:
    """Return what it costs that the kernel clears a MiB, in ms."""
    times = []
    for _ in range(5):
        with mmap.mmap(-1, 16 * MIB) as memory:
            began = time.thread_time()
            for at in range(0, 16 * MIB, PAGE):
                memory[at] = 1
            cold = time.thread_time()
            for at in range(0, 16 * MIB, PAGE):
                memory[at] = 1
            times.append((cold - began - (time.thread_time() - cold)) * 1000 / 16)
    return min(times)


def told_by(path: str, asked: str) -> Any:
    """Return what the daemon answers about itself."""
    with Client(path) as peer:
        peer.send(asked)
        return peer.recv()


def ask(served: Served, asked: Asked) -> tuple[int, float]:
    """Send a request; return the status of its answer, and after how many seconds it came."""
    address: Address = str(served.folder / "control.sock") if asked.control else ("127.0.0.1", served.port)
    request, began = asked.head + asked.body, time.perf_counter()
    if asked.send is not None:
        return asked.send(served), time.perf_counter() - began
    answer, line = talk(address, request, 600)
    seconds = time.perf_counter() - began
    line.closed(answer)
    return answer.status, seconds


def measure(served: Served, told: str, name: str, asked: Asked) -> bool:
    """Ask until the longest callback is within the limit, a few times at most; print the best, return whether it is."""
    best, allowed, over, status, seconds, grown = NONE, 0.0, float("inf"), 0, 0.0, 0
    for number in range(TRIES):
        before = told_by(told, "trim") if not number else 0
        told_by(told, "longest")
        status, seconds = ask(served, asked)
        served.ask("/ping", method="GET")  # a later callback: the one that wrote the answer has ended
        found: Callback = told_by(told, "longest")
        most = copies_time(asked.size) if asked.send is not None else 0.0
        if asked.send is not None and seconds > QUIET:
            most += min(found[1] * PAGE, 2 * asked.size) / MIB * clearing_time()
        if found[0] - most < over:
            best, allowed, over = found, most, found[0] - most
        if not number:
            grown = told_by(told, "peak") - before
        if over <= LIMIT:
            break
    kept = over <= LIMIT and (status == asked.status or (not asked.status and status in ANSWERED))
    kept = kept and grown <= MOST_MEMORY * asked.size + BESIDE
    fresh, times = best[1] * PAGE / MIB, grown / max(asked.size, MIB)
    print(
        f"{name:<70}{asked.size / MIB:>7.2f}{status:>8}{seconds:>8.2f}{best[0]:>9.2f}{allowed:>7.2f}"
        f"{max(0.0, over):>8.2f}{fresh:>7.1f}{times:>7.1f}  {'kept' if kept else 'PASSED':<7}{best[2]}",
        flush=True,
    )
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", default="0.06,5,64", help="MiB")
    parser.add_argument("--only", default="", metavar="WORD,WORD", help="kinds with one of these in their names")
    chosen = parser.parse_args()
    keep_memory()  # for the copies that the daemon's are compared with
    words = chosen.only.split(",")
    tried = {name: kind for name, kind in kinds().items() if any(word in name for word in words)}
    sizes = [int(float(size) * MIB) for size in chosen.sizes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        told = f"{folder}/callbacks"
        environment = served.environment | {_ASKED: told}
        command = [sys.executable, "-m", "tests.lab.benchmarks.callbacks", "daemon", "--background"]
        command += [option for extended in modules("bodies") for option in extended.OPTIONS]
        with subprocess.Popen(command, env=environment), served:
            eventually(lambda: served.run("status").returncode == 0, "the daemon started")
            served.note_address()
            served.register("sized")
            register(served, "INT32")
            served.register("takes_tensors", name="typed")
            served.register("sized", name="recorded")
            served.tsctl("set", "recorded", "--record-input")
            print(f"{'body':<80}{'MiB':>7}{'status':>8}{'s':>8}{'ms':>9}{'copy':>7}{'over':>8}{'fresh':>7}{'grown':>7}")
            kept = True
            for size in sizes:
                print(
                    f"{size / MIB:.2f} MiB: gRPC's two copies take {copies_time(size):.2f} ms, and "
                    f"{clearing_time():.2f} ms more for each MiB that is fresh",
                    flush=True,
                )
                for number, (name, kind) in enumerate(tried.items(), start=1):
                    print(f"{number:>4}/{len(tried):<5}", end="", flush=True)
                    kept = measure(served, told, name, kind(size)) and kept
    print("each callback keeps to 5 ms" if kept else "a callback takes longer than 5 ms, or an answer is another")
    return 0 if kept else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["daemon"]:
        sys.exit(run_daemon(sys.argv[2:]))
    sys.exit(main())
