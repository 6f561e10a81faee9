"""The conversation with a worker that runs row by row; its transport and its life are fakes."""

from typing import Any

import pytest

from tests.kit.build import make_spec
from tests.kit.worker import LoneWorker, PlayedProcess
from tsctl.daemon.core.job import Job
from tsctl.daemon.workers.local import LocalWorker
from tsctl.handlers import wire
from tsctl.handlers.credit import PATIENCE, WINDOW
from tsctl.handlers.frame_reader import FrameReader

OK = wire.Answer(200, b"ok")


class Rows(LoneWorker[LocalWorker]):
    """A worker in the mode `continuous`, and its process, which has loaded the model."""

    def __init__(self, **spec: Any) -> None:
        super().__init__()
        spec = {"mode": "continuous", "rows": 4, "response_timeout": 10.0, **spec}
        self.process = PlayedProcess(make_spec(batch_size=4, **spec), self.log, self.log, self.clock)
        self.worker = self.process.worker
        self.process.say(wire.Hello(7), wire.Loaded(0.1, False))
        self.log.events.clear()
        self.process.transport.written.clear()

    def begin(self, *names: str) -> list[Job]:
        """Send a row for each name, with ids from 1 on."""
        return [job for number, name in enumerate(names, 1) for job in self.predict(number, name)]

    def say(self, *messages: wire.ToDaemon) -> None:
        self.process.say(*messages)

    @property
    def told(self) -> list[wire.ToWorker]:
        """What the daemon has sent by the end of this turn, without rows and credit."""
        self.clock.settle()
        frames = FrameReader().feed(bytes(self.process.transport.written))
        usual = (wire.Predict, wire.Credit)
        return [each for each in map(wire.decode_for_worker, frames) if not isinstance(each, usual)]

    @property
    def killed(self) -> list[str]:
        return self.process.life.killed


@pytest.fixture
def bench() -> Rows:
    return Rows()


def test_rows_of_one_turn_are_sent_together_in_their_order(bench: Rows) -> None:
    a, _, _ = bench.begin("a", "b", "c")
    bench.worker.cancel(a)
    assert not bench.process.transport.written, "the worker would begin its call with the first row alone"
    bench.clock.settle()

    frames = FrameReader().feed(bytes(bench.process.transport.written))
    sent = [each for each in map(wire.decode_for_worker, frames) if not isinstance(each, wire.Credit)]
    assert [type(each) for each in sent] == [wire.Predict, wire.Predict, wire.Predict, wire.Cancel]


def test_a_worker_may_wait_for_a_client_that_does_not_read_before_it_counts_as_hanging(bench: Rows) -> None:
    bench.begin("a")
    bench.log.streamed = lambda worker, job, piece: setattr(piece.flow, "wanted", True)  # type: ignore
    bench.say(wire.Chunk(1, [(0, wire.Answer(200, bytes(WINDOW)))]))

    bench.clock.advance(10.0 + PATIENCE - 0.1)
    assert bench.killed == []

    bench.clock.advance(0.2)
    assert bench.killed == ["response timeout of 10 s"]


def test_a_client_that_takes_no_further_piece_is_told_of_once(bench: Rows) -> None:
    bench.begin("a")
    bench.log.streamed = lambda worker, job, piece: setattr(piece.flow, "wanted", piece.body == b"a1")  # type: ignore

    bench.say(wire.Round([(1, wire.Answer(200, b"a1"))], []))
    bench.say(wire.Round([], [], [1], [b"a2"]), wire.Round([], [], [1], [b"a3"]))

    frames = FrameReader().feed(bytes(bench.process.transport.written))
    granted = [each for each in map(wire.decode_for_worker, frames) if isinstance(each, wire.Credit)]
    assert granted == [wire.Credit(1, 0, 0)]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(wire.Round([(1, wire.Answer(200, b"a1"))], []), id="with the first piece"),
        pytest.param(wire.Round([], [], [1], [b"a2"]), id="with a further piece"),
    ],
)
def test_a_row_may_be_cancelled_while_its_piece_is_passed_on(said: wire.Round, bench: Rows) -> None:
    [a] = bench.begin("a")
    bench.log.streamed = lambda worker, job, piece: bench.worker.cancel(a)  # type: ignore[method-assign]

    bench.say(said, said)

    assert bench.told == [wire.Cancel(1)]
    bench.say(wire.Done(1, [OK], 0.1))
    assert bench.log.events == ["ended 1 after 0.1"]
