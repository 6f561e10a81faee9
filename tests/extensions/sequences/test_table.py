"""The table of open sequences: which worker keeps which, which request is next, and what a worker's end breaks."""

import json

import pytest

from tests.kit.client import Client
from tests.kit.said import said_in
from tsctl.daemon.core.client import ShareHolder
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Job
from tsctl.daemon.extensions.sequences.table import LONGEST, SequenceBroken, SequenceFull, Sequences, TooManySequences


class Bench:
    """A table for workers that are letters, and requests `a1`, `a2`, `b1` … of the sequences `a`, `b` …"""

    def __init__(self, *, most: int = 10, most_waiting: int = 10, overlapping: bool = False) -> None:
        self.table: Sequences[str] = Sequences("net", overlapping=overlapping)
        self.table.most, self.table.most_waiting = most, most_waiting
        self.now = 0.0
        self.jobs: dict[str, Job] = {}

    def arrive(self, *names: str, start: bool = False, client: str = "", known: bool = False) -> None:
        holder = ShareHolder(client, known)
        for name in names:
            self.table.check(name[0], start, self.now, holder)
            self.jobs[name] = Client().job(name)
            self.table.add_request(self.jobs[name], name[0], self.now, holder)

    def run(self, *names: str, start: bool = False, client: str = "", known: bool = False) -> None:
        """Let requests arrive and run, one second each."""
        for name in names:
            self.arrive(name, start=start, client=client, known=known)
            self.plan(x=8)
            self.now += 1.0
            self.done(name)

    def plan(self, **rooms: int) -> dict[str, list[str]]:
        return {worker: [job.id for job in jobs] for worker, jobs in self.table.plan(rooms).items()}

    def done(self, *names: str, end: bool = False) -> None:
        for name in names:
            self.table.done(self.jobs[name], self.now, end=end)


def test_an_id_that_would_fill_the_memory_is_refused() -> None:
    table = Bench().table

    table.check("x" * LONGEST, False, 0.0)
    with pytest.raises(BadRequest, match="The id of the sequence has 1001 characters; at most 1000 are taken"):
        table.check("x" * (LONGEST + 1), False, 0.0)


@said_in("next.txt")
def test_which_request_is_next(given: str) -> str:
    """`a1` arrives, and `a1+` starts anew; `x2`: worker x has room for two; `-a1` has run, and `a1.` was the last; `~x`
    ends, and `@6` is the time."""
    steps = given.split()
    options = {name: json.loads(value) for name, _, value in (each.partition("=") for each in steps if "=" in each)}
    bench = Bench(most=options.get("most", 10), overlapping=options.get("overlapping", False))
    bench.table.idle, bench.table.total = options.get("idle", bench.table.idle), options.get("total", bench.table.total)
    said = []
    for step in steps[len(options) :]:
        if step[0] in "xy":
            found = bench.plan(**{step[0]: int(step[1:])})
            assert found.keys() <= {step[0]}
            said.append(f"{step}: {', '.join(found.get(step[0], ['none']))}")
        elif step[0] == "@":
            bench.now = float(step[1:])
        elif step[0] == "~":
            bench.table.gone(step[1:], "it was stopped", bench.now)
        elif step[0] == "-":
            bench.done(step[1:])
        elif step[-1] == ".":
            bench.done(step[:-1], end=True)
        else:
            try:
                bench.arrive(step[:2], start=step.endswith("+"))
            except (TooManySequences, SequenceBroken) as error:
                said.append(f"{step}: {type(error).__name__}: {error}")
    return "\n".join([*said, f"{len(bench.table)} open"])


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
