"""The conversation with a worker that runs row by row; its transport and its life are fakes."""

from typing import Any

import pytest

from tests.kit.build import make_spec
from tests.kit.worker import LoneWorker, PlayedProcess
from tsctl.daemon.core.job import Fate, Job
from tsctl.daemon.workers.engine import Exit
from tsctl.daemon.workers.local import LocalWorker
from tsctl.daemon.workers.state import WorkerState
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


def test_a_cancelled_row_is_told_once_and_keeps_its_place_until_the_worker_ends_it(bench: Rows) -> None:
    a, _ = bench.begin("a", "b")

    bench.worker.cancel(a)
    bench.worker.cancel(a)

    assert bench.told == [wire.Cancel(1)]
    assert len(bench.worker.in_flight) == 2
    bench.say(wire.Chunk(1, [(0, OK)]), wire.Done(1, [OK], 0.1))
    assert bench.log.events == ["ended 1 after 0.1"]
    assert len(bench.worker.in_flight) == 1


def test_a_cancel_of_a_row_that_has_ended_is_ignored(bench: Rows) -> None:
    [a] = bench.begin("a")
    bench.say(wire.Done(1, [OK], 0.1))

    bench.worker.cancel(a)

    assert bench.told == []


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(wire.Done(9, [OK], 0.1), id="the end of a row that is not there"),
        pytest.param(wire.Done(1, [OK, OK], 0.1), id="two answers to one row"),
        pytest.param(wire.Done(1, [], 0.1), id="no answer"),
        pytest.param(wire.Chunk(1, [(1, OK)]), id="a piece for a second row"),
        pytest.param(wire.Cut(1, [1]), id="a cut of a second row"),
        pytest.param(wire.Round([], [], [1, 2], [b"a"]), id="more rows than pieces"),
    ],
)
def test_a_worker_that_says_what_cannot_be_is_replaced_and_no_row_is_lost(said: wire.ToDaemon) -> None:
    bench = Rows(retry=True)
    jobs = bench.begin("a", "b")

    bench.say(said)
    [why] = bench.killed
    assert why.startswith("it sent an invalid message to the daemon (")
    bench.process.life.over(Exit(None, "killed"))

    assert {outcome.job for outcome in bench.log.outcomes} <= set(jobs)
    assert not bench.worker.in_flight
    assert len(bench.log.outcomes) == 2


def test_an_end_after_the_end_is_no_message_for_anybody(bench: Rows) -> None:
    bench.begin("a")
    bench.say(wire.Done(1, [OK], 0.1))

    bench.say(wire.Done(1, [OK], 0.1))

    assert len(bench.killed) == 1


def test_a_row_of_which_nothing_is_heard_is_answered_and_cancelled_and_the_others_go_on(bench: Rows) -> None:
    bench.begin("a", "b")
    for _ in range(3):
        bench.clock.advance(4.0)
        bench.say(wire.Chunk(2, [(0, OK)]))

    assert "late a" in bench.log.events
    assert "late b" not in bench.log.events
    assert bench.told == [wire.Cancel(1)]
    assert bench.killed == []

    bench.say(wire.Done(1, [OK], 12.0), wire.Done(2, [OK], 12.0))
    assert bench.log.events[-2:] == ["ended 1 after 12", "ended 2 after 12"]


def test_a_worker_of_which_nothing_is_heard_is_killed_and_its_rows_may_run_again() -> None:
    bench = Rows(retry=True)
    jobs = bench.begin("a", "b")

    bench.clock.advance(10.1)

    assert bench.killed == ["response timeout of 10 s"]
    assert [(each.job, each.fate, each.retry) for each in bench.log.outcomes] == [
        (job, Fate.LATE, True) for job in reversed(jobs)
    ]
    assert bench.worker.state is WorkerState.DRAINING


def test_a_row_that_was_alone_with_a_worker_that_hangs_is_answered() -> None:
    bench = Rows(retry=True)
    bench.begin("a")

    bench.clock.advance(10.1)

    [outcome] = bench.log.outcomes
    assert not outcome.retry and outcome.reply is not None
    assert b"did not answer within the response timeout of 10 s" in outcome.reply.body


def test_what_is_said_of_cancelled_rows_does_not_keep_a_worker_alive(bench: Rows) -> None:
    [a] = bench.begin("a")
    bench.worker.cancel(a)

    for _ in range(3):
        bench.clock.advance(4.0)
        bench.say(wire.Chunk(1, [(0, OK)]))

    assert bench.killed == ["response timeout of 10 s"]


def test_a_worker_may_wait_for_a_client_that_does_not_read_before_it_counts_as_hanging(bench: Rows) -> None:
    bench.begin("a")
    bench.log.streamed = lambda worker, job, piece: setattr(piece.flow, "wanted", True)  # type: ignore
    bench.say(wire.Chunk(1, [(0, wire.Answer(200, bytes(WINDOW)))]))

    bench.clock.advance(10.0 + PATIENCE - 0.1)
    assert bench.killed == []

    bench.clock.advance(0.2)
    assert bench.killed == ["response timeout of 10 s"]


def test_the_batch_size_is_the_number_of_places_of_a_continuous_worker_from_now_on(bench: Rows) -> None:
    bench.worker.set_limits(2, 10.0)

    assert bench.worker.in_flight.capacity == 2
    assert bench.told == [wire.BatchSize(2)]


def test_an_asynchronous_worker_keeps_its_places_whatever_the_batch_size() -> None:
    bench = Rows(mode="async", rows=100)

    bench.worker.set_limits(2, 10.0)

    assert bench.worker.in_flight.capacity == 100


def test_a_worker_with_more_places_than_the_batch_size_keeps_the_proportion() -> None:
    bench = Rows(rows=8)

    bench.worker.set_limits(2, 10.0)

    assert bench.worker.in_flight.capacity == 4


def test_the_pieces_of_one_call_go_to_their_rows(bench: Rows) -> None:
    bench.begin("a", "b")

    bench.say(
        wire.Round([(1, wire.Answer(200, b"a1"))], []),
        wire.Round([(2, wire.Answer(200, b"b1"))], [], [1], [b"a2"]),
        wire.Round([], [wire.Done(1, [OK], 0.1)], [2, 1, 7], [b"b2", b"a3", b"of nobody"]),
    )

    streamed = [f"streamed b'{body}'" for body in ("a1", "b1", "a2", "b2", "a3")]
    assert bench.log.events == [*streamed, "ended 1 after 0.1"]


def test_a_further_piece_of_a_row_counts_as_heard_and_one_of_a_cancelled_row_does_not(bench: Rows) -> None:
    a, _ = bench.begin("a", "b")
    bench.worker.cancel(a)
    for _ in range(3):
        bench.clock.advance(4.0)
        bench.say(wire.Round([], [], [2, 1], [b"b1", b"a1"]))

    assert bench.killed == []
    assert bench.told == [wire.Cancel(1)]
    for _ in range(3):
        bench.clock.advance(4.0)
        bench.say(wire.Round([], [], [1], [b"a1"]))

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


def test_rows_of_a_suspended_worker_have_their_timeouts_again_when_it_goes_on(bench: Rows) -> None:
    bench.begin("a", "b")
    bench.clock.advance(9.0)

    bench.worker.suspend()
    bench.clock.advance(100.0)
    bench.worker.resume()
    bench.clock.advance(9.9)
    assert (bench.told, bench.killed) == ([], [])
    bench.clock.advance(0.2)

    assert bench.killed == ["response timeout of 10 s"]


def test_a_worker_whose_rows_ended_while_it_was_suspended_times_the_next_ones(bench: Rows) -> None:
    bench.begin("a")
    bench.worker.suspend()
    bench.say(wire.Done(1, [OK], 0.1))
    bench.worker.resume()

    bench.predict(2, "b")
    bench.clock.advance(10.1)

    assert bench.killed == ["response timeout of 10 s"]
