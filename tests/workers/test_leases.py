"""Whatever becomes of a request, a worker that was sent it reads its bytes and no others until it is done with them.

Each row of `WAYS` is a way in which a request can end, or go elsewhere, while a worker has it. The model, its
dispatcher, pool and conversation with workers are real. A worker's process and its transport are fakes, and it reads
the arena as a worker does: by the places that its frames name.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.build import make_model
from tests.kit.worker import PlayedProcess
from tsctl.daemon.core.arena import SHARED_FROM, Arena, Lease
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.job import Job, JobPhase, Param, Reply, TimeBudget
from tsctl.daemon.workers.engine import BatchEvents, Exit, WorkerListener, WorkerSpec
from tsctl.daemon.workers.local import LocalWorker
from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader


class Process(PlayedProcess):
    """A worker process that is a test: what it was sent, and what it reads of that."""

    def __init__(
        self, arena: Arena, clock: FakeClock, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents
    ) -> None:
        super().__init__(spec, events, batches, clock, arena)
        self.unanswered: dict[int, wire.Predict] = {}
        self._arena = arena
        self._reader = FrameReader()

    @property
    def batches(self) -> list[int]:
        """The batches that it has not answered, the oldest first."""
        self.read()
        return list(self.unanswered)

    def done(self) -> None:
        """Answer the oldest batch, as a worker does that has read it for the last time."""
        number = self.batches[0]
        rows = self.unanswered.pop(number).rows
        self.say(wire.Done(number, [wire.Answer(200, row.id.encode()) for row in rows], 0.01))

    def exit(self) -> None:
        """End the process, as seen by the daemon."""
        self.read()
        self.unanswered.clear()
        self.life.over(Exit(None, "killed"))
        self._clock.settle()

    def read(self) -> list[tuple[str, bytes]]:
        """Read each value of the batches that it has not answered, with the name of its request."""
        written = bytes(self.transport.written)
        self.transport.written.clear()
        for frame in self._reader.feed(written):
            message = wire.decode_for_worker(frame)
            if isinstance(message, wire.Predict):
                self.unanswered[message.batch] = message
        return [
            (batch.rows[each.row].id, bytes(self._arena.view[each.offset : each.offset + each.length]))
            for batch in self.unanswered.values()
            for each in batch.stored
        ]


class Rig:
    """A model, its workers, and an arena with room for eight bodies."""

    def __init__(self, *, workers: int = 1, batch_size: int = 1, retry: bool = True) -> None:
        self.clock = FakeClock()
        self.arena = Arena(8 * SHARED_FROM)
        self.processes: list[Process] = []
        self.jobs: dict[str, Job] = {}
        self.replies: dict[str, Reply] = {}
        self.model = make_model(
            self, self.clock, batch_size=batch_size, retry=retry, policy="greedy", response_timeout=5.0,
            queue_bytes=10**9,
        )  # fmt: skip
        self.model.scale(workers, workers)
        self.load()
        for name in (
            "v",
            "w",
        ):  # the second tells how long a batch takes: now batches go ahead
            self.ask(name)
            self.processes[0].done()

    def start_worker(self, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents) -> LocalWorker:
        self.processes.append(Process(self.arena, self.clock, spec, events, batches))
        return self.processes[-1].worker

    def load(self) -> None:
        """Report all starting workers as loaded."""
        for process in self.processes:
            process.say(wire.Hello(7), wire.Loaded(0.1, False))

    def ask(self, name: str, seconds: float | None = None, parts: int = 1) -> None:
        """Send a request that may take so many seconds, its body cut into so many parameters of one place."""
        stored = self.arena.take(SHARED_FROM)
        assert stored is not None
        stored.view[:] = body_of(name)
        size = SHARED_FROM // parts
        params = [Param(f"{part}", "", stored.part(part * size, (part + 1) * size)) for part in range(parts)]
        now = self.clock.now()
        budget = None if seconds is None else TimeBudget(seconds, now, "a test")
        self.jobs[name] = Job(
            name, params, [], now, lambda reply: self.replies.update({name: reply}), lambda piece: None, budget=budget
        )
        self.model.submit(self.jobs[name])
        self.clock.settle()

    def leave(self, name: str) -> None:
        self.model.abandon(self.jobs[name])
        self.clock.settle()

    def receive_others(self) -> list[Lease]:
        """Fill all memory that is free with bodies that are still being received."""
        others = []
        while (place := self.arena.take(1)) is not None:
            place.view[:] = b"\xee" * len(place)
            others.append(place)
        return others


def body_of(name: str) -> bytes:
    return name.encode() * (SHARED_FROM // len(name))


# What ends requests while workers have them; each gives what the workers do at last.
Finish = Callable[[Rig], None]


def its_deadline(rig: Rig) -> Finish:
    rig.ask("a", seconds=1.0)
    rig.clock.advance(1.0)
    assert rig.replies["a"].status == 504
    return lambda rig: rig.processes[0].done()


def the_deadline_of_one_that_was_sent_ahead(rig: Rig) -> Finish:
    rig.ask("a")
    rig.ask("b", seconds=1.0)
    rig.clock.advance(1.0)
    assert rig.replies["b"].status == 504

    def finish(rig: Rig) -> None:
        rig.processes[0].done()
        rig.processes[0].done()

    return finish


def the_deadline_of_one_of_its_batch(rig: Rig) -> Finish:
    rig.ask("z")
    rig.ask("a", seconds=1.0)
    rig.ask("b")
    rig.processes[0].done()
    rig.clock.advance(1.0)
    assert rig.replies["a"].status == 504
    return lambda rig: rig.processes[0].done()


def its_client_leaves(rig: Rig) -> Finish:
    rig.ask("a")
    rig.leave("a")
    return lambda rig: rig.processes[0].done()


def its_deadline_while_its_rows_run_alone(rig: Rig) -> Finish:
    rig.ask("a", seconds=1.0)
    rig.processes[0].say(wire.Chunk(rig.processes[0].batches[0], []))
    rig.clock.advance(1.0)
    assert rig.replies["a"].status == 504
    return lambda rig: rig.processes[0].done()


def its_deadline_after_a_piece(rig: Rig) -> Finish:
    rig.ask("a", seconds=1.0)
    rig.processes[0].say(wire.Chunk(rig.processes[0].batches[0], [(0, wire.Answer(200, b"piece"))]))
    rig.clock.advance(1.0)
    assert rig.jobs["a"].phase is JobPhase.ENDED
    return lambda rig: rig.processes[0].done()


def the_response_timeout(rig: Rig) -> Finish:
    rig.ask("a")
    rig.clock.advance(5.0)
    assert rig.replies["a"].status == 500 and rig.processes[0].life.killed
    return lambda rig: rig.processes[0].exit()


def the_response_timeout_and_a_late_answer(rig: Rig) -> Finish:
    rig.ask("a")
    rig.clock.advance(5.0)
    assert rig.replies["a"].status == 500
    return lambda rig: rig.processes[0].done()


def the_response_timeout_behind_which_one_waits(rig: Rig) -> Finish:
    rig.ask("a")
    rig.ask("b")
    rig.clock.advance(5.0)
    assert rig.replies["a"].status == 500

    def finish(rig: Rig) -> None:
        rig.processes[0].exit()
        rig.load()
        rig.processes[1].done()

    return finish


def a_second_worker_has_it_too(rig: Rig) -> Finish:
    rig.ask("z")
    rig.ask("a")
    rig.ask("b")
    rig.processes[0].done()
    rig.model.scale(2, 2)
    rig.load()
    rig.clock.advance(5.0)
    assert rig.processes[0].life.killed and not rig.replies.keys() & {"a", "b"}
    assert [len(process.batches) for process in rig.processes] == [1, 1]

    def finish(rig: Rig) -> None:
        rig.processes[1].done()
        rig.processes[1].done()
        rig.processes[0].exit()

    return finish


def a_second_worker_has_answered_it(rig: Rig) -> Finish:
    a_second_worker_has_it_too(rig)
    rig.processes[1].done()
    rig.processes[1].done()
    assert rig.replies["a"].status == rig.replies["b"].status == 200
    return lambda rig: rig.processes[0].exit()


def a_frame_that_is_none(rig: Rig) -> Finish:
    rig.ask("a", seconds=1.0)
    rig.processes[0].write(b"\1\0\0\0x")
    rig.clock.advance(1.0)
    assert rig.replies["a"].status == 504 and rig.processes[0].life.killed
    return lambda rig: rig.processes[0].exit()


def a_connection_that_has_ended(rig: Rig) -> Finish:
    rig.ask("a", seconds=1.0)
    rig.processes[0].transport.receive_eof()
    rig.clock.advance(1.0)
    assert rig.replies["a"].status == 504
    return lambda rig: rig.processes[0].exit()


def a_kill(rig: Rig) -> Finish:
    rig.ask("a", seconds=1.0)
    rig.processes[0].worker.kill()
    rig.clock.advance(1.0)
    assert rig.processes[0].life.killed
    return lambda rig: rig.processes[0].exit()


def a_worker_that_is_not_wanted_any_more(rig: Rig) -> Finish:
    rig.ask("a")
    rig.ask("b", seconds=1.0)
    assert len(rig.processes[0].batches) == 2
    rig.model.scale(0, 0)
    rig.clock.advance(1.0)
    assert rig.replies["b"].status == 504

    def finish(rig: Rig) -> None:
        rig.processes[0].done()
        rig.processes[0].done()

    return finish


def a_version_that_is_stopped_and_has_no_time_left(rig: Rig) -> Finish:
    rig.ask("a")
    rig.model.stop()
    rig.model.pool.drain(1.0)
    rig.clock.advance(1.0)
    rig.leave("a")
    assert rig.processes[0].life.killed
    return lambda rig: rig.processes[0].exit()


def its_deadline_in_the_second_lane_of_a_pipeline(rig: Rig) -> Finish:
    rig.ask("a")
    rig.ask("b", seconds=1.0)
    rig.processes[0].say(*map(wire.Started, rig.processes[0].batches))
    rig.clock.advance(1.0)
    rig.processes[0].done()
    assert rig.replies["b"].status == 504
    return lambda rig: rig.processes[0].done()


def the_response_timeout_of_one_lane(rig: Rig) -> Finish:
    rig.ask("a")
    rig.ask("b")
    rig.processes[0].say(*map(wire.Started, rig.processes[0].batches))
    rig.clock.advance(5.0)
    rig.leave("b")
    assert rig.replies["a"].status == 500
    return lambda rig: rig.processes[0].exit()


def the_deadline_of_one_with_several_parts_in_one_place(rig: Rig) -> Finish:
    rig.ask("a", seconds=1.0, parts=4)
    rig.clock.advance(1.0)
    assert rig.replies["a"].status == 504
    return lambda rig: rig.processes[0].done()


WAYS: list[tuple[Callable[[Rig], Finish], dict[str, Any]]] = [
    (its_deadline, {}),
    (the_deadline_of_one_that_was_sent_ahead, {}),
    (the_deadline_of_one_of_its_batch, {"batch_size": 2}),
    (its_client_leaves, {}),
    (its_deadline_while_its_rows_run_alone, {}),
    (its_deadline_after_a_piece, {}),
    (the_response_timeout, {}),
    (the_response_timeout_and_a_late_answer, {}),
    (the_response_timeout_behind_which_one_waits, {}),
    (a_second_worker_has_it_too, {"batch_size": 2}),
    (a_second_worker_has_answered_it, {"batch_size": 2}),
    (a_frame_that_is_none, {"retry": False}),
    (a_connection_that_has_ended, {"retry": False}),
    (a_kill, {"retry": False}),
    (a_worker_that_is_not_wanted_any_more, {}),
    (a_version_that_is_stopped_and_has_no_time_left, {}),
    (its_deadline_in_the_second_lane_of_a_pipeline, {}),
    (the_response_timeout_of_one_lane, {}),
    (the_deadline_of_one_with_several_parts_in_one_place, {}),
]


@pytest.mark.parametrize(("way", "settings"), [pytest.param(*row, id=row[0].__name__) for row in WAYS])
def test_a_worker_reads_what_it_was_sent_until_it_is_done(
    way: Callable[[Rig], Finish], settings: dict[str, Any]
) -> None:
    rig = Rig(**settings)
    finish = way(rig)

    others = rig.receive_others()
    read = [each for process in rig.processes for each in process.read()]

    assert read, "a worker still has something to read"
    wrong = [name for name, value in read if value != body_of(name)[: len(value)]]
    assert wrong == []
    finish(rig)
    del others
    assert rig.arena.used == 0
