"""The table of open sequences: which worker keeps which, which request is next, and what a worker's end breaks."""

from typing import Any

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
            self.table.add_request(self.jobs[name], name[0], self.now, client)

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


@pytest.mark.parametrize(
    ("options", "script", "left"),
    [
        pytest.param({}, "a1 a2 b1 c1 x8=a1,b1,c1 x8=", 3, id="a batch has one request of each sequence"),
        pytest.param({}, "a1 a2 b1 x8=a1,b1 -a1 x8=a2", 2, id="the next follows when the one before has run"),
        pytest.param({}, "a1 x1=a1 -a1 a2 y1= x1=a2", 1, id="a sequence stays with its worker"),
        pytest.param({}, "a1 b1 c1 a2 x2=a1,b1 -a1 -b1 x2=a2,c1", 3, id="who has waited longest is first"),
        pytest.param({"overlapping": True}, "a1 a2 b1 x3=a1,b1,a2", 2, id="rows of a sequence may overlap"),
        pytest.param({"most": 1}, "a1 x1=a1 b1! a1. b1 y1=b1", 1, id="a sequence that has ended makes room"),
        pytest.param({}, "a1 a2 x1=a1 a1. x1=a2 -a2", 0, id="what waits behind the last request is run"),
        pytest.param(
            {"most": 2, "idle": 5.0}, "a1 x1=a1 -a1 b1 y1=b1 @6 c1 y1=c1 c1. a2 y1= x1=a2", 2,
            id="a quiet sequence makes room after its idle time, and goes on where it was",
        ),
        pytest.param(
            {"most": 1, "total": 5.0}, "a1 x1=a1 @4.9 -a1 b1! @5 b1", 1,
            id="one that has had its time makes room although it is not idle",
        ),
        pytest.param({}, "a1 x1=a1 ~x a2? a3+ a4 y1=a3", 1, id="a broken one refuses until one starts it anew"),
        pytest.param({}, "a1 x1=a1 -a1 ~x -a1", 0, id="what runs when its worker ends comes back without harm"),
    ],
)  # fmt: skip
def test_which_request_is_next(options: dict[str, Any], script: str, left: int) -> None:
    """`a1` arrives, `a1!` and `a1?` find no room or a broken sequence, `a1+` starts anew; `x2=a1,b1`: worker x has room
    for two and gets these; `-a1` has run, and `a1.` was the last; `~x` ends, and `@6` is the time."""
    bench = Bench(most=options.get("most", 10), overlapping=options.get("overlapping", False))
    bench.table.idle, bench.table.total = options.get("idle", bench.table.idle), options.get("total", bench.table.total)

    for step in script.split():
        if "=" in step:
            room, _, names = step.partition("=")
            assert bench.plan(**{room[0]: int(room[1:])}) == ({room[0]: names.split(",")} if names else {}), step
        elif step[0] == "@":
            bench.now = float(step[1:])
        elif step[0] == "~":
            bench.table.gone(step[1:], "it was stopped", bench.now)
        elif step[0] == "-":
            bench.done(step[1:])
        elif step[-1] == ".":
            bench.done(step[:-1], end=True)
        elif step[-1] in "!?":
            expected, text = (TooManySequences, "at a time") if step[-1] == "!" else (SequenceBroken, "it was stopped")
            with pytest.raises(expected, match=text):
                bench.arrive(step[:-1])
        else:
            bench.arrive(step[:2], start=step.endswith("+"))

    assert len(bench.table) == left


def test_new_sequences_go_to_the_worker_that_keeps_the_fewest() -> None:
    bench = Bench()
    bench.arrive("a1", "b1", "c1", "d1")

    assert bench.plan(x=8, y=8) == {"x": ["a1", "c1"], "y": ["b1", "d1"]}


def test_an_answer_may_end_a_sequence() -> None:
    bench = Bench()
    bench.arrive("a1")
    bench.plan(x=1)
    bench.done("a1")

    bench.table.end(["a", "unknown"])

    assert len(bench.table) == 0


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
