"""The table of open sequences: which worker keeps which, which request is next, and what a worker's end breaks."""

import pytest

from tests.kit.client import Client
from tsctl.daemon.core.job import Job
from tsctl.daemon.extensions.sequences.table import SequenceBroken, SequenceFull, Sequences, TooManySequences


class Bench:
    """A table for workers that are letters, and requests `a1`, `a2`, `b1` … of the sequences `a`, `b` …"""

    def __init__(self, *, most: int = 10, most_waiting: int = 10, overlapping: bool = False) -> None:
        self.table: Sequences[str] = Sequences("net", overlapping=overlapping)
        self.table.most, self.table.most_waiting = most, most_waiting
        self.now = 0.0
        self.jobs: dict[str, Job] = {}

    def arrive(self, *names: str, start: bool = False, client: str = "") -> None:
        for name in names:
            self.table.check(name[0], start, self.now, client)
            self.jobs[name] = Client().job(name)
            self.table.add(self.jobs[name], name[0], self.now, client)

    def run(self, *names: str, start: bool = False, client: str = "") -> None:
        """Let requests arrive and run, one second each."""
        for name in names:
            self.arrive(name, start=start, client=client)
            self.plan(x=8)
            self.now += 1.0
            self.done(name)

    def plan(self, **rooms: int) -> dict[str, list[str]]:
        return {worker: [job.id for job in jobs] for worker, jobs in self.table.plan(rooms).items()}

    def done(self, *names: str, end: bool = False) -> None:
        for name in names:
            self.table.done(self.jobs[name], self.now, end=end)


def test_a_batch_has_one_request_of_each_sequence() -> None:
    bench = Bench()
    bench.arrive("a1", "a2", "b1", "c1")

    assert bench.plan(x=8) == {"x": ["a1", "b1", "c1"]}
    assert bench.plan(x=8) == {}


def test_the_next_request_follows_when_the_one_before_has_run() -> None:
    bench = Bench()
    bench.arrive("a1", "a2", "b1")
    bench.plan(x=8)

    bench.done("a1")

    assert bench.plan(x=8) == {"x": ["a2"]}


def test_a_sequence_stays_with_its_worker() -> None:
    bench = Bench()
    bench.arrive("a1")
    assert bench.plan(x=1) == {"x": ["a1"]}
    bench.done("a1")
    bench.arrive("a2")

    assert bench.plan(y=1) == {}
    assert bench.plan(y=1, x=1) == {"x": ["a2"]}


def test_new_sequences_go_to_the_worker_that_keeps_the_fewest() -> None:
    bench = Bench()
    bench.arrive("a1", "b1", "c1", "d1")

    assert bench.plan(x=8, y=8) == {"x": ["a1", "c1"], "y": ["b1", "d1"]}


def test_the_batch_size_is_kept_and_who_has_waited_longest_is_first() -> None:
    bench = Bench()
    bench.arrive("a1", "b1", "c1", "a2")
    assert bench.plan(x=2) == {"x": ["a1", "b1"]}
    bench.done("a1", "b1")

    assert bench.plan(x=2) == {"x": ["a2", "c1"]}


def test_requests_of_a_sequence_may_overlap_where_rows_run_on_their_own() -> None:
    bench = Bench(overlapping=True)
    bench.arrive("a1", "a2", "b1")

    assert bench.plan(x=3) == {"x": ["a1", "b1", "a2"]}


def test_a_sequence_that_has_ended_makes_room() -> None:
    bench = Bench(most=1)
    bench.arrive("a1")
    bench.plan(x=1)
    with pytest.raises(TooManySequences, match="keeps 1 sequences at a time"):
        bench.arrive("b1")

    bench.done("a1", end=True)

    bench.arrive("b1")
    assert bench.plan(y=1) == {"y": ["b1"]}


def test_requests_that_wait_behind_the_last_one_are_run() -> None:
    bench = Bench()
    bench.arrive("a1", "a2")
    bench.plan(x=1)

    bench.done("a1", end=True)

    assert bench.plan(x=1) == {"x": ["a2"]}
    bench.done("a2")
    assert len(bench.table) == 0


def test_an_answer_may_end_a_sequence() -> None:
    bench = Bench()
    bench.arrive("a1")
    bench.plan(x=1)
    bench.done("a1")

    bench.table.end(["a", "unknown"])

    assert len(bench.table) == 0


def test_a_quiet_sequence_makes_room_after_its_idle_time_and_goes_on_where_it_was() -> None:
    bench = Bench(most=2)
    bench.table.idle = 5.0
    bench.arrive("a1")
    bench.plan(x=1)
    bench.done("a1")
    bench.arrive("b1")
    bench.plan(y=1)
    bench.now = 6.0
    bench.arrive("c1")  # b runs, so a makes room
    bench.plan(y=1)
    bench.done("c1", end=True)

    bench.arrive("a2")

    assert bench.plan(y=1) == {}
    assert bench.plan(x=1) == {"x": ["a2"]}


def test_a_sequence_that_has_had_its_time_makes_room_although_it_is_not_idle() -> None:
    bench = Bench(most=1)
    bench.table.total = 5.0
    bench.arrive("a1")
    bench.plan(x=1)
    bench.now = 4.9
    bench.done("a1")
    with pytest.raises(TooManySequences):
        bench.arrive("b1")

    bench.now = 5.0
    bench.arrive("b1")


def test_as_many_requests_of_one_sequence_wait_as_may() -> None:
    bench = Bench(most_waiting=2)
    bench.arrive("a1", "a2", "b1")

    with pytest.raises(SequenceFull, match='2 requests of the sequence "a" wait'):
        bench.arrive("a3")

    bench.plan(x=1)
    bench.arrive("a3")


def test_a_request_whose_client_left_is_not_run() -> None:
    bench = Bench()
    bench.arrive("a1", "a2", "b1")

    bench.table.drop(bench.jobs["a1"])
    bench.table.drop(bench.jobs["b1"])

    assert bench.plan(x=8) == {"x": ["a2"]}
    assert len(bench.table) == 1


def test_the_end_of_a_worker_breaks_its_sequences_and_no_other() -> None:
    bench = Bench()
    bench.arrive("a1", "b1", "a2", "c1")
    bench.plan(x=1)
    bench.plan(y=1)

    answers = bench.table.gone("x", "it exited with code 7", bench.now)

    assert [(job.id, str(error)) for job, error in answers] == [
        (
            "a2",
            'The state of the sequence "a" is lost: it exited with code 7. Start it anew, with the header'
            " ts_request_sequence_start: true.",
        )
    ]
    bench.done("b1")
    bench.arrive("b2")
    assert bench.plan(y=8) == {"y": ["b2", "c1"]}


def test_a_broken_sequence_refuses_requests_until_one_starts_it_anew() -> None:
    bench = Bench()
    bench.arrive("a1")
    bench.plan(x=1)
    bench.table.gone("x", "it was stopped", bench.now)

    with pytest.raises(SequenceBroken, match="is lost: it was stopped"):
        bench.arrive("a2")

    bench.arrive("a3", start=True)
    bench.arrive("a4")
    assert bench.plan(y=1) == {"y": ["a3"]}


def test_what_runs_when_its_worker_ends_comes_back_after_the_end_without_harm() -> None:
    bench = Bench()
    bench.arrive("a1")
    bench.plan(x=1)

    bench.done("a1")
    bench.table.gone("x", "it exited", bench.now)
    bench.done("a1")

    assert len(bench.table) == 0
