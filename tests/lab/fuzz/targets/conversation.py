"""A worker's messages to the daemon (workers/local.py): each job returns once, for any bytes on its connection.

The bytes are all that the worker ever says, and again what it says when it is ready; when it is, it has two batches.
Then its process ends. Another model's metrics are read meanwhile: whatever a worker says, they are as before.
"""

from collections.abc import Iterable
from typing import Any

from tests.kit.build import make_spec
from tests.kit.client import Client
from tests.kit.shelf import modules
from tests.kit.worker import PlayedProcess, WorkerLog
from tests.lab.fuzz.damage import cuts
from tests.lab.fuzz.targets import Target
from tests.lab.fuzz.targets.frames import MESSAGES
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.job import Batch, Job, Reply
from tsctl.daemon.http.messages import Response
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.workers.engine import Exit, Worker
from tsctl.daemon.workers.state import WorkerState
from tsctl.handlers import wire
from tsctl.handlers.sdk.pending_metrics import PendingMetrics

Told = tuple[list[str], list[tuple[str, str]], list[str]]
READY = bytes(wire.encode(wire.Hello(7)) + wire.encode(wire.Loaded(0.1, False)))


def check(data: bytes) -> object:
    said = []
    for beginning in (READY, b""):
        whole = _told(beginning, [data], scraped=True)
        for pieces in cuts(data):
            assert _told(beginning, pieces) == whole, pieces
        said.append(whole)
    return said


class _Log(WorkerLog):
    """Sends two batches to a worker as soon as it is ready, and holds the rules of its events."""

    def __init__(self) -> None:
        super().__init__()
        client = Client()
        self.jobs = [client.job(name) for name in "abcd"]
        self.given: list[Job] = []

    def loaded(self, worker: Worker) -> None:
        assert not any(event.startswith("load") for event in self.events), self.events
        super().loaded(worker)
        for number in (1, 2):
            batch = self.jobs[2 * number - 2 : 2 * number]
            self.given += batch
            for job in batch:
                job.send()
            worker.predict(Batch(number, batch, "full"))

    def load_failed(self, worker: Worker, failure: Any) -> None:
        assert not any(event.startswith("load") for event in self.events), self.events
        super().load_failed(worker, failure)

    def streamed(self, worker: Worker, job: Job, piece: Reply) -> None:
        super().streamed(worker, job, piece)
        _check_head(piece)


def _told(beginning: bytes, pieces: Iterable[bytes], *, scraped: bool = False) -> Told:
    """Return the daemon's view of its worker: events, each job's outcome, and why the worker was killed."""
    clock, log = FakeClock(), _Log()
    metrics = Metrics()
    own, other = VersionMetrics("m", "1.0"), VersionMetrics("other", "1.0")
    metrics.add(own)
    metrics.add(other)
    other.emitted.add_measurements(_measured("counter", "Told", 7.0) + _measured("histogram", "ms", 1.5))
    spec = make_spec(
        batch_size=2,
        retry=True,
        startup_timeout=60.0,
        measured=own.emitted.add_measurements,
        isolated=own.batch_isolated,
    )
    process = PlayedProcess(spec, log, log, clock)
    worker = process.worker
    process.transport.receive(beginning)
    for piece in pieces:
        process.write(piece)
    process.life.over(Exit(None, "ended"))
    clock.settle()

    assert {each.name: each.total[0] for each in other.emitted.series} == {"Told": 7.0, "ms": 1.5}
    assert worker.state is WorkerState.EXITED and worker.in_flight.running is None
    ended = [outcome.job for outcome in log.outcomes]
    assert len(ended) == len(log.given) and set(ended) == set(log.given), log.events
    for outcome in log.outcomes:
        if outcome.reply is not None:
            _check_head(outcome.reply)
    if scraped:
        for each in modules("scraped"):
            each.check(metrics)
    became = [(each.job.id, "again" if each.reply is None else str(each.reply)) for each in log.outcomes]
    return log.events, became, process.life.killed[:1]


def _measured(kind: wire.Kind, name: str, value: float) -> list[wire.Measurement]:
    tally = PendingMetrics()
    tally.add(kind, name, "", [("Level", "Host")], value)
    return tally.take_measurements()


def _check_head(reply: Reply) -> None:
    """Check that an answer is one HTTP response, whatever its status, phrase and headers are."""
    assert 200 <= reply.status <= 599, reply
    head = Response(reply.status, reply.body, reply.headers, reply.phrase).head("id", keep_alive=True)
    lines = head.split(b"\r\n")
    assert lines[-2:] == [b"", b""] and all(line and b"\n" not in line for line in lines[:-2]), head


def _said(*messages: wire.ToDaemon) -> bytes:
    return b"".join(bytes(wire.encode(message)) for message in messages)


def _of(kind: str, value: float = 1.0, buckets: Any = (), **parts: Any) -> wire.Measurement:
    """A measurement that no tally makes."""
    broken: Any = kind
    made = wire.Measurement(broken, parts.get("name", "lie"), parts.get("unit", ""), (("Level", "Host"),), value)
    made.buckets = list(buckets)
    return made


_TWO = [wire.Answer(200, b"a"), wire.Answer(500, b"b", error="E")]
_PIECE = wire.Chunk(1, [(0, _TWO[0]), (1, _TWO[1])])
_LONG = "x" * (wire.LONGEST_TEXT + 1)
# Each is a message by its form, and none that our worker would send.
LIES: dict[str, list[wire.ToDaemon]] = {
    "an unknown kind of metric": [wire.Done(1, _TWO, 0.5, [_of("summary")])],
    "a counter that falls": [wire.Done(1, _TWO, 0.5, [_of("counter", -1.0)])],
    "a counter that is no number": [wire.Done(1, _TWO, 0.5, [_of("counter", float("nan"))])],
    "a histogram's sum without end": [wire.Done(1, _TWO, 0.5, [_of("histogram", float("inf"), [1])])],
    "a histogram with too many buckets": [wire.Done(1, _TWO, 0.5, [_of("histogram", 1.0, [0] * 24)])],
    "a histogram with a negative count": [wire.Done(1, _TWO, 0.5, [_of("histogram", 1.0, [-1])])],
    "too many measurements": [wire.Done(1, _TWO, 0.5, [_of("gauge")] * (wire.MOST_SERIES + 1))],
    "a name without end": [wire.Done(1, _TWO, 0.5, [_of("gauge", name=_LONG)])],
    "a status below": [wire.Done(1, [wire.Answer(199, b""), _TWO[1]], 0.5)],
    "a status above": [wire.Done(1, [_TWO[0], wire.Answer(600, b"", error="E")], 0.5)],
    "a piece with the status of an upgrade": [wire.Chunk(1, [(0, wire.Answer(101, b""))])],
    "a negative row": [wire.Chunk(1, [(-1, _TWO[0])])],
    "a phrase without end": [wire.Done(1, [wire.Answer(200, b"", _LONG), _TWO[1]], 0.5)],
    "too many headers": [wire.Done(1, [wire.Answer(200, b"", "", [("a", "b")] * 1001), _TWO[1]], 0.5)],
    "a negative time": [wire.Done(1, _TWO, -0.5)],
    "a time that is no number": [wire.Done(1, _TWO, float("nan"))],
    "a time without end": [wire.Done(1, _TWO, float("inf"))],
    "a negative count of failures": [wire.Done(1, _TWO, 0.5, [], wire.Isolation(-1, 0.1))],
    "an isolation of negative time": [wire.Done(1, _TWO, 0.5, [], wire.Isolation(1, -0.1))],
}
TARGET = Target(
    check,
    [
        _said(wire.Done(1, _TWO, 0.5), wire.Done(2, _TWO, 0.5)),
        _said(_PIECE, wire.Started(2), wire.Done(1, _TWO, 0.5), wire.Chunk(2, [(1, _TWO[0])])),
        _said(wire.Done(1, _TWO, 0.5, [], wire.Isolation(1, 0.1)), wire.Done(2, _TWO[:1], 0.5)),
        _said(_PIECE) + b"\1\0\0\0x" + _said(wire.Done(1, _TWO, 0.5)),
        _said(wire.Hello(7), wire.LoadFailed("no", ""), wire.LoadFailed("no", ""), wire.Loaded(0.1, False)),
        _said(wire.Hello(7), wire.Loaded(0.1, True), wire.LoadFailed("no", ""), wire.Loaded(0.1, False)),
        _said(wire.Done(1, _TWO, 0.5, [], wire.Isolation(1, 0.7))),
        *(bytes(wire.encode(message)) for message in MESSAGES),
        *(_said(*messages) for messages in LIES.values()),
    ],
)
