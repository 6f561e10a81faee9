"""The conversation with a worker process; its transport and its life are fakes. The real ones are in tests/e2e."""

from typing import Any

import pytest

from tests.kit.build import make_spec
from tests.kit.worker import LoneWorker, PlayedProcess
from tsctl.daemon.core.job import Batch
from tsctl.daemon.workers.engine import Exit
from tsctl.daemon.workers.local import LocalWorker
from tsctl.handlers import wire


class Conversation(LoneWorker[LocalWorker]):
    """A local worker, and its process, which has said hello."""

    def __init__(self, **spec: Any) -> None:
        super().__init__()
        self.process = PlayedProcess(make_spec(batch_size=2, **spec), self.log, self.log, self.clock)
        self.worker = self.process.worker
        self.process.say(wire.Hello(7))


def answers(*names: str) -> list[wire.Answer]:
    return [wire.Answer(200, name.encode()) for name in names]


def ready(**spec: Any) -> Conversation:
    bench = Conversation(**spec)
    bench.process.say(wire.Loaded(0.1, False))
    return bench


@pytest.fixture
def bench() -> Conversation:
    return ready()


def test_what_the_worker_declares_and_notes_is_known_once_it_is_ready() -> None:
    bench = Conversation()
    declared = wire.Declared([wire.Input("texts", "text", "list[str]")], batches=True)
    assert (bench.worker.declared, bench.worker.notes) == (None, ())

    bench.process.say(wire.Loaded(0.1, False, declared=declared, notes=["a note"]))

    assert (bench.worker.declared, bench.worker.notes) == (declared, ["a note"])


@pytest.mark.parametrize(
    ("retry", "own_handle", "again"),
    [(None, False, True), (None, True, False), (False, False, False), (True, True, True)],
)
def test_a_job_may_run_again_where_its_model_says_so_and_else_where_the_handle_is_ours(
    retry: bool | None, own_handle: bool, again: bool
) -> None:
    bench = Conversation(retry=retry)
    bench.process.say(wire.Loaded(0.1, own_handle=own_handle))
    bench.predict(1, "a")

    bench.process.life.over(Exit(7, "ended"))

    assert [outcome.retry for outcome in bench.log.outcomes] == [again]


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(b"\1\0\0\0x", id="what is no message"),
        pytest.param(
            bytes(wire.encode(wire.LoadFailed("no", "xyz"))).replace(b"xyz", b"\xe2yz"), id="text that is none"
        ),
    ],
)
def test_after_what_is_no_message_nothing_that_a_worker_says_counts(broken: bytes, bench: Conversation) -> None:
    bench.predict(1, "ab")
    piece = bytes(wire.encode(wire.Chunk(1, [(0, answers("a")[0])])))

    bench.process.transport.receive(piece + broken)
    bench.process.say(wire.Done(1, answers("a", "b"), 0.5))

    assert bench.log.events == ["loaded", "streamed b'a'", "lost"]
    [why] = bench.process.life.killed
    assert why.startswith("it sent an invalid message to the daemon (")


def test_a_worker_is_congested_while_most_of_a_batch_is_unread(bench: Conversation) -> None:
    transport = bench.process.transport
    transport.window = 0

    bench.worker.predict(batch_of(bench, 1, 1024 * 1024))
    assert bench.worker.in_flight.congested
    transport.take(2 * 1024 * 1024)

    assert not bench.worker.in_flight.congested
    assert bench.log.events == ["loaded", "congested", "relieved"]


def test_a_small_batch_congests_no_worker(bench: Conversation) -> None:
    bench.process.transport.window = 0

    bench.worker.predict(batch_of(bench, 1, 1024))

    assert bench.log.events == ["loaded"]


def batch_of(bench: Conversation, number: int, size: int) -> Batch:
    job = bench.client.job("a", body=b"x" * size)
    job.send()
    return Batch(number, [job], "full")


@pytest.mark.parametrize("passing", [True, False])
def test_a_load_that_failed_with_the_gpu_may_succeed_in_another_worker(passing: bool) -> None:
    bench = Conversation()

    bench.process.say(wire.LoadFailed("AcceleratorError", "", passing=passing))

    assert [failure.permanent for failure in bench.log.failures] == [not passing]


def test_a_failure_says_why_an_optimization_was_refused() -> None:
    bench = Conversation()

    bench.process.say(wire.LoadFailed("HandlerError: optimize: int8 cannot be done: no VNNI", "", refused="no VNNI"))

    assert [failure.refused for failure in bench.log.failures] == ["no VNNI"]
