"""The conversation with a worker process; its transport and its life are fakes. The real ones are in tests/e2e."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.build import make_spec
from tests.kit.worker import LoneWorker, PlayedProcess
from tests.lab.fuzz.targets.conversation import LIES
from tsctl.daemon.core.job import Batch, Fate
from tsctl.daemon.workers.engine import UNREACHABLE, Exit
from tsctl.daemon.workers.local import LEAVE_TIME, LocalWorker
from tsctl.daemon.workers.state import WorkerState
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


def test_a_batch_is_answered(bench: Conversation) -> None:
    bench.predict(1, "ab")

    bench.process.say(wire.Done(1, answers("a", "b"), 0.5))

    assert bench.log.events == ["loaded", "ended 1 after 0.5"]
    assert [outcome.reply.body for outcome in bench.log.outcomes if outcome.reply] == [b"a", b"b"]


def test_what_the_worker_declares_and_notes_is_known_once_it_is_ready() -> None:
    bench = Conversation()
    declared = wire.Declared([wire.Input("texts", "text", "list[str]")], batches=True)
    assert (bench.worker.declared, bench.worker.notes) == (None, ())

    bench.process.say(wire.Loaded(0.1, False, declared=declared, notes=["a note"]))

    assert (bench.worker.declared, bench.worker.notes) == (declared, ["a note"])


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
    jobs = [*bench.predict(1, "ab"), *bench.predict(2, "cd")]

    bench.process.say(said)
    [why] = bench.process.life.killed
    assert why.startswith("it sent an invalid message to the daemon (")
    bench.process.life.over(Exit(None, "killed"))

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
def test_after_what_is_no_message_nothing_that_a_worker_says_counts(broken: bytes, bench: Conversation) -> None:
    bench.predict(1, "ab")
    piece = bytes(wire.encode(wire.Chunk(1, [(0, answers("a")[0])])))

    bench.process.transport.receive(piece + broken)
    bench.process.say(wire.Done(1, answers("a", "b"), 0.5))

    assert bench.log.events == ["loaded", "streamed b'a'", "lost"]
    [why] = bench.process.life.killed
    assert why.startswith("it sent an invalid message to the daemon (")


def is_stopped(bench: Conversation) -> None:
    bench.worker.kill()


def is_killed_from_outside(bench: Conversation) -> None:
    bench.process.life.died_of_sigkill = True


def lies(bench: Conversation) -> None:
    bench.process.write(b"\1\0\0\0x")


def ends_of_itself(bench: Conversation) -> None:
    """Do nothing to the worker."""


@pytest.mark.parametrize(
    ("happens", "crashed", "fate"),
    [
        pytest.param(is_stopped, False, Fate.STOPPED, id="the daemon stopped it"),
        pytest.param(is_killed_from_outside, False, Fate.KILLED, id="SIGKILL from outside"),
        pytest.param(lies, False, Fate.LOST, id="the daemon killed it for an invalid message"),
        pytest.param(ends_of_itself, True, Fate.CRASHED, id="it ended of itself"),
    ],
)
def test_the_fate_of_started_jobs_is_how_their_worker_ended(
    happens: Callable[[Conversation], None], crashed: bool, fate: Fate
) -> None:
    bench = ready(retry=True)
    bench.predict(1, "ab")
    bench.predict(2, "cd")

    happens(bench)
    bench.process.life.over(Exit(None, "ended", crashed=crashed))

    assert [outcome.fate for outcome in bench.log.outcomes] == [Fate.UNSTARTED] * 2 + [fate] * 2
    assert all(outcome.retry for outcome in bench.log.outcomes)


def test_a_worker_whose_connection_has_ended_gets_nothing_more(bench: Conversation) -> None:
    bench.process.transport.receive_eof()
    bench.clock.settle()

    assert bench.worker.state is WorkerState.DRAINING
    assert bench.log.events == ["loaded", "lost"]


def test_a_worker_that_loads_too_late_is_not_ready() -> None:
    bench = Conversation(startup_timeout=5.0)

    bench.clock.advance(5.0)
    bench.process.say(wire.Loaded(5.0, False))

    assert bench.process.life.killed == ["startup timeout of 5 s"]
    assert bench.log.events == ["load failed: the model was not loaded within the startup timeout of 5 s"]
    assert bench.worker.state is WorkerState.DRAINING


def test_a_worker_that_is_not_wanted_any_more_has_the_response_timeout_for_each_batch() -> None:
    bench = ready(response_timeout=5.0)
    bench.predict(1, "ab")
    bench.predict(2, "cd")
    bench.worker.drain(math.inf)

    bench.clock.advance(4.0)
    bench.process.say(wire.Done(1, answers("a", "b"), 4.0))
    bench.clock.advance(4.0)
    assert bench.process.life.killed == []
    bench.clock.advance(1.0)

    assert bench.process.life.killed == ["response timeout of 5 s"]


def test_a_worker_that_has_to_leave_is_killed_after_the_grace_time() -> None:
    bench = ready(response_timeout=5.0)
    bench.predict(1, "ab")

    bench.worker.drain(2.0)
    bench.clock.advance(2.0)

    assert bench.process.life.killed == ["it did not finish within the grace time"]


def test_a_worker_that_waits_for_a_node_says_why_it_was_not_loaded_in_time() -> None:
    bench = Conversation()
    bench.process.life.waits = "it takes 1 GPU, and GPU is missing"

    bench.clock.advance(120.0)

    [failed] = [event for event in bench.log.events if event.startswith("load failed")]
    assert failed.endswith("within the startup timeout of 120 s: it takes 1 GPU, and GPU is missing")


@pytest.mark.parametrize("kind", [UNREACHABLE, "code"])
def test_each_batch_of_an_unreachable_worker_may_have_begun(kind: str) -> None:
    bench = ready(retry=False)
    bench.predict(1, "ab")
    bench.predict(2, "cd")

    bench.process.life.over(Exit(None, "its node does not answer", kind=kind))

    fates = [outcome.fate for outcome in bench.log.outcomes]
    assert fates == ([Fate.LOST] * 4 if kind == UNREACHABLE else [Fate.UNSTARTED] * 2 + [Fate.LOST] * 2)


def test_a_suspended_worker_has_the_response_timeout_again_when_it_goes_on() -> None:
    bench = ready(response_timeout=5.0)
    bench.predict(1, "a")
    bench.clock.advance(4.0)

    bench.worker.suspend()
    bench.clock.advance(100.0)
    assert bench.process.life.suspended and bench.process.life.killed == []
    bench.worker.resume()
    bench.clock.advance(4.9)
    assert not bench.process.life.suspended and bench.process.life.killed == []
    bench.clock.advance(0.2)

    assert bench.process.life.killed == ["response timeout of 5 s"]


def test_the_time_in_which_a_worker_was_suspended_is_not_its_batchs(bench: Conversation) -> None:
    bench.predict(1, "a")
    bench.worker.suspend()
    bench.worker.suspend()
    bench.clock.advance(2.0)
    bench.worker.resume()
    bench.worker.resume()

    bench.process.say(wire.Done(1, answers("a"), 2.5))
    bench.predict(2, "b")
    bench.process.say(wire.Done(2, answers("b"), 0.5))

    assert bench.log.events == ["loaded", "ended 1 after 0.5", "ended 2 after 0.5"]


def test_an_answer_that_a_worker_wrote_before_it_was_suspended_is_taken() -> None:
    bench = ready(response_timeout=5.0)
    bench.predict(1, "a")
    bench.predict(2, "b")
    bench.worker.suspend()

    bench.process.say(wire.Done(1, answers("a"), 0.5))
    bench.clock.advance(100.0)

    assert bench.log.events == ["loaded", "ended 1 after 0.5"] and bench.process.life.killed == []


def test_a_suspended_worker_that_is_drained_goes_on(bench: Conversation) -> None:
    bench.predict(1, "a")
    bench.worker.suspend()

    bench.worker.drain(30.0)

    assert not bench.process.life.suspended


def test_a_worker_that_loads_is_not_suspended() -> None:
    bench = Conversation()

    bench.worker.suspend()

    assert not bench.process.life.suspended


def test_a_worker_on_a_node_is_not_suspended_and_keeps_its_timeout() -> None:
    bench = ready(response_timeout=5.0)
    bench.process.life.node = "node-1"
    bench.predict(1, "a")

    bench.worker.suspend()
    bench.clock.advance(5.1)

    assert bench.process.life.killed == ["response timeout of 5 s"]


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


def test_a_worker_that_has_lost_its_gpu_gets_nothing_more_and_its_requests_come_back() -> None:
    bench = ready(retry=True)
    jobs = [*bench.predict(1, "ab"), *bench.predict(2, "cd")]

    bench.process.say(wire.GpuLost("its GPU context is broken"))
    assert bench.worker.state is WorkerState.DRAINING
    bench.process.life.over(Exit(wire.EXIT_GPU_LOST, "its GPU context is broken", crashed=True, kind="gpu"))

    assert bench.log.events[1:] == [
        "lost", "ended 2 after 0", "ended 1 after 0", "exited: its GPU context is broken",
    ]  # fmt: skip
    fates = {outcome.job: (outcome.fate, outcome.retry) for outcome in bench.log.outcomes}
    assert fates == dict(zip(jobs, [(Fate.CRASHED, True)] * 2 + [(Fate.UNSTARTED, True)] * 2, strict=True))


def test_a_worker_that_has_lost_its_gpu_and_does_not_leave_is_killed(bench: Conversation) -> None:
    bench.process.say(wire.GpuLost("its GPU context is broken"))
    bench.clock.advance(LEAVE_TIME)

    assert bench.process.life.killed == ["its GPU context is broken"]


@pytest.mark.parametrize("passing", [True, False])
def test_a_load_that_failed_with_the_gpu_may_succeed_in_another_worker(passing: bool) -> None:
    bench = Conversation()

    bench.process.say(wire.LoadFailed("AcceleratorError", "", passing=passing))

    assert [failure.permanent for failure in bench.log.failures] == [not passing]
