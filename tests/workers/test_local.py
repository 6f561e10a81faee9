"""The conversation with a worker process; its transport and its life are fakes. The real ones are in tests/e2e."""

import math
from typing import Any

import pytest

from daemon.core.clock import FakeClock
from daemon.core.job import Batch, Job
from daemon.workers import local
from daemon.workers.engine import Exit
from daemon.workers.local import LocalWorker
from daemon.workers.state import State
from handlers import wire
from tests.build import Client, FakeLife, WorkerLog, make_spec
from tests.http.fake import FakeTransport
from tests.lab.fuzz.targets.conversation import LIES


class Bench:
    """A worker and what it says."""

    def __init__(self, **spec: Any) -> None:
        self.clock = FakeClock()
        self.log = WorkerLog()
        self.client = Client()
        loop: Any = None
        self.worker = LocalWorker(make_spec(batch_size=2, **spec), self.log, self.log, loop, self.clock, loop, None)
        self.life: FakeLife = self.worker._life  # type: ignore[assignment]
        self.transport = FakeTransport(self.worker, self.clock.soon)
        self.say(wire.Hello(7))

    def say(self, *messages: wire.ToDaemon) -> None:
        self.transport.receive(b"".join(bytes(wire.encode(message)) for message in messages))
        self.clock.settle()

    def send(self, number: int, names: str) -> list[Job]:
        jobs = [self.client.job(name) for name in names]
        for job in jobs:
            job.send()
        self.worker.predict(Batch(number, jobs, "full"))
        return jobs


@pytest.fixture(autouse=True)
def _fake_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "Life", FakeLife)


def answers(*names: str) -> list[wire.Answer]:
    return [wire.Answer(200, name.encode()) for name in names]


def ready(**spec: Any) -> Bench:
    bench = Bench(**spec)
    bench.say(wire.Loaded(0.1, False))
    return bench


def test_a_batch_is_answered() -> None:
    bench = ready()
    bench.send(1, "ab")

    bench.say(wire.Done(1, answers("a", "b"), 0.5))

    assert bench.log.events == ["loaded", "ended 1 after 0.5"]
    assert [outcome.reply.body for outcome in bench.log.outcomes if outcome.reply] == [b"a", b"b"]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(wire.Done(1, answers("a"), 0.5), id="too few answers"),
        pytest.param(wire.Done(1, answers("a", "b", "c"), 0.5), id="too many"),
        pytest.param(wire.Done(2, answers("c", "d"), 0.5), id="answers to a batch that has not begun"),
        pytest.param(wire.Chunk(1, [(2, answers("c")[0])]), id="a piece for nobody"),
        pytest.param(wire.Chunk(1, [(-1, answers("b")[0])]), id="a piece for a row before the first"),
        *(pytest.param(*said, id=name) for name, said in LIES.items()),
    ],
)
def test_a_worker_that_says_what_cannot_be_is_replaced_and_no_request_is_lost(said: wire.ToDaemon) -> None:
    bench = ready(retry=True)
    jobs = [*bench.send(1, "ab"), *bench.send(2, "cd")]

    bench.say(said)
    [why] = bench.life.killed
    assert why.startswith("it sent an invalid message to the daemon (")
    bench.life.over(Exit(None, "killed"))

    assert bench.log.events[1:] == ["lost", "ended 2 after 0", "ended 1 after 0", "exited: killed"]
    assert {outcome.job for outcome in bench.log.outcomes} == set(jobs)
    assert all(outcome.reply is None and outcome.retry for outcome in bench.log.outcomes)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(b"\1\0\0\0x", id="what is no message"),
        pytest.param(
            bytes(wire.encode(wire.LoadFailed("no", "xyz"))).replace(b"xyz", b"\xe2yz"), id="text that is none"
        ),
    ],
)
def test_after_what_is_no_message_nothing_that_a_worker_says_counts(broken: bytes) -> None:
    bench = ready()
    bench.send(1, "ab")
    piece = bytes(wire.encode(wire.Chunk(1, [(0, answers("a")[0])])))

    bench.transport.receive(piece + broken)
    bench.say(wire.Done(1, answers("a", "b"), 0.5))

    assert bench.log.events == ["loaded", "streamed b'a'", "lost"]
    [why] = bench.life.killed
    assert why.startswith("it sent an invalid message to the daemon (")


def test_a_worker_whose_connection_has_ended_gets_nothing_more() -> None:
    bench = ready()

    bench.transport.receive_eof()
    bench.clock.settle()

    assert bench.worker.state is State.DRAINING
    assert bench.log.events == ["loaded", "lost"]


def test_a_worker_that_loads_too_late_is_not_ready() -> None:
    bench = Bench(startup_timeout=5.0)

    bench.clock.advance(5.0)
    bench.say(wire.Loaded(5.0, False))

    assert bench.life.killed == ["startup timeout of 5 s"]
    assert bench.log.events == ["load failed: the model was not loaded within the startup timeout of 5 s"]
    assert bench.worker.state is State.DRAINING


def test_a_worker_that_is_not_wanted_any_more_has_the_response_timeout_for_each_batch() -> None:
    bench = ready(response_timeout=5.0)
    bench.send(1, "ab")
    bench.send(2, "cd")
    bench.worker.drain(math.inf)

    bench.clock.advance(4.0)
    bench.say(wire.Done(1, answers("a", "b"), 4.0))
    bench.clock.advance(4.0)
    assert bench.life.killed == []
    bench.clock.advance(1.0)

    assert bench.life.killed == ["response timeout of 5 s"]


def test_a_worker_that_has_to_leave_is_killed_after_the_grace_time() -> None:
    bench = ready(response_timeout=5.0)
    bench.send(1, "ab")

    bench.worker.drain(2.0)
    bench.clock.advance(2.0)

    assert bench.life.killed == ["it did not finish within the grace time"]
