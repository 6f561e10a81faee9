"""Rank 0 and the other ranks of its group: starts them, sends them what it runs, and ends with the first of them.

Each other rank is a worker like any (handlers/worker.py), whose daemon is rank 0. A thread of rank 0 reads what they
report: the main thread may be within a call that waits for a rank that has gone.
"""

import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader
from tsctl.handlers.texts.signals import signal_name

LATE = 5.0  # seconds


class Rounds:
    """Whether the ranks of a group keep step: each ends a round, the load or a batch, before any begins the next.

        round 0: the load     round 1: a batch     …
        rank 0  ──────┤       ──────┤
        rank 1  ────────┤     ────┤

    A rank whose handler raised does not take part in what the others still exchange, and they wait for it for minutes.
    If all ranks raise, as for a request that none can read, they end together and go on. So a round is *broken* if a
    rank failed in it, and `LATE` seconds later another one has not ended it.

    Attributes:
        deadline: when the round is broken; inf while no rank has failed.
    """

    def __init__(self) -> None:
        self.deadline = math.inf
        self._number = 0
        self._waited_for: set[int] = set()
        self._failed: set[int] = set()

    def begin_round(self, number: int, ranks: int) -> None:
        """Begin a round of this many ranks."""
        self._number = number
        self._waited_for = set(range(ranks))
        self._failed = set()
        self.deadline = math.inf

    def end(self, number: int, rank: int, now: float, *, failed: bool) -> None:
        """Note that a rank has ended a round."""
        if number != self._number:
            return
        self._waited_for.discard(rank)
        if failed:
            self._failed.add(rank)
        if not self._waited_for:
            self.deadline = math.inf
        elif self._failed and self.deadline == math.inf:
            self.deadline = now + LATE

    @property
    def over(self) -> bool:
        """Whether all ranks have ended the round."""
        return not self._waited_for

    @property
    def broken(self) -> str:
        """A sentence about a broken round, for people."""
        failed, late = _names(self._failed), _names(self._waited_for)
        return f"the handler raised in {failed}, and {late} did not end the same call within {LATE:g} s"


def _names(ranks: set[int]) -> str:
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, sorted(ranks)))


ADDRESS = "127.0.0.1"
# The ranks are processes of one machine: nothing of theirs listens on a network.
_INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
_LOOPBACK = "lo"


def rank_environment(environment: Mapping[str, str], rank: int, count: int, port: int, run: str) -> dict[str, str]:
    """Return the environment of one rank.

    The variables are those of torchrun (PyTorch's documentation, "torchrun", Environment Variables), as it sets them
    where the rendezvous runs outside the ranks.

    Args:
        environment: of the worker.
        port: of the rendezvous store, on this machine.
        run: a name for the group.
    """
    number, size = str(rank), str(count)
    return dict(environment) | {
        "RANK": number, "LOCAL_RANK": number, "ROLE_RANK": number, "GROUP_RANK": "0", "ROLE_NAME": "default",
        "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "ROLE_WORLD_SIZE": size, "GROUP_WORLD_SIZE": "1",
        "MASTER_ADDR": ADDRESS, "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": run, "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    } | {name: environment.get(name, _LOOPBACK) for name in _INTERFACES}  # fmt: skip


LOAD = 0  # the number of the first round; batches count from 1
LEAVE_TIME = 2.0  # seconds in which the other ranks leave when their connection ends
_ENDING = 1.0  # seconds between the end of a rank's connection and its exit status
_READ_SIZE = 64 * 1024


class Ended(Protocol):
    """A started process."""

    pid: int
    returncode: int | None

    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...


class Other(NamedTuple):
    """Another rank, seen from rank 0."""

    rank: int
    process: Ended
    socket: socket.socket
    reader: FrameReader


Start = Callable[[Mapping[str, str]], tuple[Ended, socket.socket]]
Send = Callable[[wire.ToDaemon], None]
End = Callable[[int, str], None]


class Leader:
    """The other ranks of this worker's group.

    Attributes:
        watching: the thread that reads their reports, until they have gone.

    Args:
        load: of this worker, which has `ranks`.
        send: sends a message to the daemon, from any thread.
        end: ends this process with an exit code, and a sentence for the model's log.
        start: starts a rank with an environment; returns its process, and a socket to it.

    Raises:
        OSError: a rank cannot be started.
    """

    def __init__(
        self, load: wire.Load, send: Send, end: End, start: Start | None = None, port: int | None = None
    ) -> None:
        assert load.ranks is not None
        self._each, self._count = load.ranks.each, load.ranks.count
        self._tell_daemon = send
        self._end = end
        self._rounds = Rounds()
        self._changed = threading.Condition()
        self._failure: wire.LoadFailed | None = None  # of the first other rank
        self._lost_gpus: dict[int, str] = {}  # rank → how its GPU was lost
        self._closing = False
        self._store: Any = None
        if port is None:
            self._store, port = open_store()
        run = f"{load.model_name}-{os.getpid()}"
        environments = [rank_environment(os.environ, rank, self._count, port, run) for rank in range(self._count)]
        self._others = [
            Other(rank, *(start or start_rank)(environments[rank]), FrameReader()) for rank in range(1, self._count)
        ]
        os.environ.update(environments[0])
        self._rounds.begin_round(LOAD, self._count)
        for other in self._others:
            self._send(other, _load_of(load, load.ranks, other.rank))
        self.watching = threading.Thread(target=self._watch, name="ranks", daemon=True)
        self.watching.start()

    def begin_round(self, number: int) -> None:
        """Begin a round: what follows is run by all ranks, unless rank 0 alone takes the batches."""
        with self._changed:
            self._rounds.begin_round(number, self._count if self._each else 1)

    def forward(self, message: wire.ToWorker) -> None:
        """Send a message to all other ranks; batches only where each rank runs them."""
        if isinstance(message, wire.Predict):
            message = wire.Predict(message.batch, message.rows)  # the values are in the rows: the frame holds them all
        if self._each or not isinstance(message, wire.Predict | wire.NextCall):
            for other in self._others:
                self._send(other, message)

    def end(self, number: int, *, failed: bool) -> None:
        """Note that rank 0 has ended a round, and wait for the others; a broken round ends this process."""
        with self._changed:
            self._rounds.end(number, 0, time.monotonic(), failed=failed)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._rounds.over)

    def loaded(self) -> wire.LoadFailed | None:
        """Note that rank 0 has loaded the model, and wait for the others; return the failure of the first, if any."""
        self.end(LOAD, failed=False)
        return self._failure

    def load_failed(self, own: wire.LoadFailed) -> wire.LoadFailed:
        """Return the failure to report: that of another rank if it came first, since it may be the cause."""
        with self._changed:
            return self._failure or own

    def close(self) -> None:
        """End the other ranks: they leave, or are killed."""
        self._closing = True
        for other in self._others:
            other.socket.shutdown(socket.SHUT_WR)
        until = time.monotonic() + LEAVE_TIME
        for other in self._others:
            try:
                other.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                other.process.kill()

    def _send(self, other: Other, message: wire.ToWorker) -> None:
        try:
            other.socket.sendall(wire.encode(message))
        except OSError:
            threading.Event().wait()  # the rank has gone: the thread that watches ends this process

    def _watch(self) -> None:
        poll = select.poll()
        others = {other.socket.fileno(): other for other in self._others}
        for number in others:
            poll.register(number, select.POLLIN)
        while True:
            with self._changed:
                deadline = self._rounds.deadline
            if not others and deadline == math.inf:
                return
            left = None if deadline == math.inf else math.ceil(max(0.0, deadline - time.monotonic()) * 1000)
            for number, _ in poll.poll(left):
                if not self._read(others[number]):
                    poll.unregister(number)
                    del others[number]
            with self._changed:
                if time.monotonic() >= self._rounds.deadline:
                    self._give_up()
                    return

    def _read(self, other: Other) -> bool:
        """Read what a rank reports; return False at the end of its connection."""
        try:
            data = other.socket.recv(_READ_SIZE)
        except OSError:
            data = b""
        if not data:
            self._gone(other)
            return False
        for frame in other.reader.feed(data):
            self._heard(other.rank, wire.decode_for_daemon(frame))
        return True

    def _heard(self, rank: int, message: wire.ToDaemon) -> None:
        with self._changed:
            if isinstance(message, wire.LoadFailed):
                named = msgspec.structs.replace(message, error=f"rank {rank}: {message.error}")
                self._failure = self._failure or named
                self._rounds.end(LOAD, rank, time.monotonic(), failed=True)
            elif isinstance(message, wire.Loaded):
                self._rounds.end(LOAD, rank, time.monotonic(), failed=False)
            elif isinstance(message, wire.GpuLost):
                self._lost_gpus[rank] = message.reason
            elif isinstance(message, wire.Done):
                self._rounds.end(message.batch, rank, time.monotonic(), failed=bool(message.failures))
            self._changed.notify_all()

    def _gone(self, other: Other) -> None:
        """End with a rank that has ended, unless it reported that it cannot load the model."""
        if self._closing or self._failure is not None:
            return
        try:
            code = other.process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            how, killed = "closed its connection", False
        else:
            how = f"was killed by {signal_name(-code)}" if code < 0 else f"exited with code {code}"
            killed = code == -signal.SIGKILL
        lost = self._lost_gpus.get(other.rank)
        self._leave(f"rank {other.rank} {how}" if lost is None else f"rank {other.rank}: {lost}", killed=killed)

    def _give_up(self) -> None:
        if self._failure is not None:
            self._tell_daemon(self._failure)
            self._end(wire.EXIT_LOAD_FAILED, self._rounds.broken)
        else:
            self._leave(self._rounds.broken, killed=False)

    def _leave(self, reason: str, *, killed: bool) -> None:
        self._tell_daemon(wire.MemberLost(reason, killed))
        self._end(wire.EXIT_MEMBER_LOST, f"this worker ends: {reason}")


def open_store() -> tuple[Any, int]:
    """Return the store at which the ranks meet, and its port: on the loopback interface, and of this group alone."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    listening = socket.socket()
    listening.bind((ADDRESS, 0))
    listening.listen(128)
    port = listening.getsockname()[1]
    # With a socket of ours, because the store's own would listen on every interface, on a port that may be taken.
    return TCPStore(
        ADDRESS, port, is_master=True, wait_for_workers=False, master_listen_fd=listening.detach()
    ), port  # fmt: skip


def start_rank(environment: Mapping[str, str]) -> tuple[Ended, socket.socket]:
    """Start a rank, in this process's group and with its output.

    Raises:
        OSError: there is no process or descriptor left.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tsctl.handlers.worker", str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env=environment,
        )
    return process, ours


def _load_of(load: wire.Load, ranks: wire.Ranks, rank: int) -> wire.Load:
    """Return what a rank loads: what rank 0 does, with the GPU of its number. It is in rank 0's cgroup already."""
    return msgspec.structs.replace(
        load,
        group="",
        ranks=msgspec.structs.replace(ranks, rank=rank),
        gpus=[],
        gpu_id=rank if load.gpus else None,
    )
