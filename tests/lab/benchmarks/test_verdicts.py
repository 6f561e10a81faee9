"""What the benchmarks judge of servers: whether an answer is right, who is better, and what a kill cost."""

import pytest

from tests.environments import Missing
from tests.lab.benchmarks import page
from tests.lab.benchmarks.models import same_classes, same_numbers
from tests.lab.benchmarks.page import losses
from tests.lab.benchmarks.peers import PEERS
from tests.lab.benchmarks.results import Figures, Results
from tests.lab.benchmarks.workloads import PATIENCE, WORKLOADS, Record, judge

EXPECTED = {"7": 0.5, "3": 0.2, "9": 0.1}


def figures(rate: float, **more: float) -> Figures:
    return {"rate": rate, "p50": 0.001, "p95": 0.002, "p99": 0.003, "errors": 0, "cpu": 5e-5, "pss": 2**26} | more


def results_of(**servers: Figures) -> Results:
    results = Results({"workloads": ["constant", "kill"]})
    for server, found in servers.items():
        results.add("constant", 8, server, found)
    return results


def test_a_server_that_is_better_is_named_with_its_ratio_and_noise_is_not() -> None:
    (line,) = losses(results_of(tsctl=figures(100.0), mosec=figures(150.0), litserve=figures(101.0)))

    assert "answers a second: better is mosec (1.50 × ours)" in line


def test_the_wheel_is_not_measured_where_sources_would_be_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/a/tree")

    with pytest.raises(Missing, match="PYTHONPATH is /a/tree, whose sources would be measured in place of the wheel"):
        PEERS["tsctl"].install()


def test_less_is_better_of_everything_but_the_rate() -> None:
    lines = losses(results_of(tsctl=figures(100, pss=100.0, p99=0.004), mosec=figures(100, pss=50.0, p99=0.008)))

    assert len(lines) == 1 and "memory" in lines[0]


def test_a_server_that_answers_wrongly_or_never_again_does_not_win() -> None:
    results = results_of(tsctl=figures(1.0))
    results.add("constant", 8, "mosec", figures(1e6, wrong=1))
    results.add("kill", 0, "tsctl", {"again": 0.2})
    results.add("kill", 0, "mosec", {"again": float("inf")})

    assert "| mosec | wrong answers |" in page.load_table(results, "constant", 8)
    assert losses(results) == []


@pytest.mark.parametrize("figure", ["p50", "p99", "cpu", "pss"])
def test_a_figure_that_was_not_measured_is_no_win(figure: str) -> None:
    results = results_of(tsctl=figures(100.0), mosec=figures(100.0) | {figure: 0})

    assert losses(results) == []
    row = next(line for line in page.load_table(results, "constant", 8).splitlines() if line.startswith("| mosec "))
    assert "|  |" in row


def test_no_failed_request_is_a_win() -> None:
    results = Results({"workloads": ["kill"]})
    results.add("kill", 0, "tsctl", {"lost": 8})
    results.add("kill", 0, "mosec", {"lost": 0})

    assert [line.rpartition(": ")[2] for line in losses(results)] == ["better is mosec (0 against 8)."]


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        pytest.param(b'{"7": 0.5, "3": 0.2, "9": 0.1}', True, id="the same"),
        pytest.param(b'{"7": 0.501, "3": 0.199, "8": 0.1}', True, id="rounded otherwise, the last another"),
        pytest.param(b'{"7": 0.6, "3": 0.2}', False, id="another probability"),
        pytest.param(b'{"3": 0.2, "9": 0.1}', False, id="without the best"),
        pytest.param(b"[1, 2]", False, id="no classes"),
        pytest.param(b"oops", False, id="no JSON"),
    ],
)
def test_classes_are_the_same_but_for_rounding(answer: bytes, right: bool) -> None:
    assert same_classes(answer, EXPECTED) is right


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        pytest.param(b"[0.6, -0.8]", True, id="the same"),
        pytest.param(b"[0.6004, -0.7996]", True, id="rounded otherwise"),
        pytest.param(b"[0.602, -0.8]", False, id="another number"),
        pytest.param(b"[0.6]", False, id="one is missing"),
        pytest.param(b'{"message": "no"}', False, id="no numbers"),
    ],
)
def test_embeddings_are_the_same_but_for_rounding(answer: bytes, right: bool) -> None:
    assert same_numbers(answer, [0.6, -0.8]) is right


def test_each_server_is_measured_with_a_workload() -> None:
    assert {name for each in WORKLOADS.values() for name in each.peers} == set(PEERS)


def test_a_kill_is_judged_by_what_became_of_the_requests() -> None:
    killed = 10.0
    records = [
        Record(8.0, 9.0, "good"),  # before it
        Record(9.5, 10.1, "failed"),  # the worker had it
        Record(9.9, 10.9, "good"),  # run again by another worker
        Record(10.2, 10.3, "failed"),  # nobody is there
        Record(9.8, 9.8 + PATIENCE, "hanging"),
        Record(10.6, 11.5, "good"),
    ]

    assert judge(records, killed) == {"lost": 1, "refused": 1, "hanging": 1, "again": 1.5}
    assert judge(records[:5], killed)["again"] == float("inf")
