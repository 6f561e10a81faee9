"""What a worker says to the daemon (workers/local.py): each job comes back once, whatever comes over its connection.

The worker has said that it is ready and has two batches; then come the bytes, and its process ends.
"""

from collections.abc import Iterable
from typing import Any, cast
from unittest.mock import patch

from daemon.clock import FakeClock
from daemon.http.fake import FakeTransport
from daemon.job import Batch
from daemon.workers import local
from daemon.workers.engine import Exit
from daemon.workers.local import LocalWorker
from daemon.workers.state import State
from handlers import wire
from tests.build import Client, FakeLife, WorkerLog, make_spec
from tests.fuzz.cuts import cuts
from tests.fuzz.target import Target
from tests.fuzz.targets.frames import MESSAGES

Told = tuple[list[str], list[tuple[str, str]], list[str]]


def check(data: bytes) -> object:
    whole = _told([data])
    for pieces in cuts(data):
        assert _told(pieces) == whole, pieces
    return whole


def _told(pieces: Iterable[bytes]) -> Told:
    """What the daemon hears of its worker: events, what became of each job, and why it was killed."""
    clock, log, client = FakeClock(), WorkerLog(), Client()
    nothing: Any = None
    with patch.object(local, "Life", FakeLife):
        worker = LocalWorker(make_spec(batch_size=2, retry=True), log, nothing, clock, nothing, None)
    life = cast(FakeLife, worker._life)
    transport = FakeTransport(worker, clock.soon)
    transport.receive(bytes(wire.encode(wire.Hello(7)) + wire.encode(wire.Loaded(0.1, False))))
    jobs = [client.job(name) for name in "abcd"]
    for job in jobs:
        job.send()
    worker.predict(Batch(1, jobs[:2], "full"))
    worker.predict(Batch(2, jobs[2:], "full"))
    for piece in pieces:
        transport.receive(piece)
        clock.settle()
    life.over(Exit(None, "ended"))
    clock.settle()

    assert worker.state is State.EXITED and worker.hand.running is None
    ended = [outcome.job for outcome in log.outcomes]
    assert len(ended) == len(jobs) and set(ended) == set(jobs), log.events
    became = [(each.job.id, "again" if each.reply is None else str(each.reply)) for each in log.outcomes]
    return log.events, became, life.killed[:1]


def _said(*messages: wire.ToDaemon) -> bytes:
    return b"".join(bytes(wire.encode(message)) for message in messages)


_TWO = [wire.Answer(200, b"a"), wire.Answer(500, b"b", error="E")]
_PIECE = wire.Chunk(1, [(0, _TWO[0]), (1, _TWO[1])])
TARGET = Target(
    check,
    [
        _said(wire.Done(1, _TWO, 0.5), wire.Done(2, _TWO, 0.5)),
        _said(_PIECE, wire.Started(2), wire.Done(1, _TWO, 0.5), wire.Chunk(2, [(1, _TWO[0])])),
        _said(wire.Done(1, _TWO, 0.5, [], wire.Isolation(1, 0.1)), wire.Done(2, _TWO[:1], 0.5)),
        _said(_PIECE) + b"\1\0\0\0x" + _said(wire.Done(1, _TWO, 0.5)),
        *(bytes(wire.encode(message)) for message in MESSAGES),
    ],
)
