"""From results to the page."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.lab.benchmarks.__main__ import options, turns
from tests.lab.benchmarks.models import Served, same_classes
from tests.lab.benchmarks.reporting import page, svg
from tests.lab.benchmarks.reporting.losing import at, losses
from tests.lab.benchmarks.reporting.results import Figures, Results
from tests.lab.benchmarks.workloads.kill import PATIENCE, Record, judge

FACTS = {
    "date": "2026-01-01", "machine": "a machine", "cores": "2", "memory": "8 GiB of memory", "kernel": "6.1",
    "python": "3.11", "torch": "2", "versions": "tsctl 1", "wrk": "wrk 4", "batch_size": 8, "delay": "10 ms",
    "rounds": 3, "workloads": ["constant", "kill"], "peers": ["tsctl", "mosec"], "whole": True,
}  # fmt: skip


def figures(rate: float, **more: float) -> Figures:
    return {"rate": rate, "p50": 0.001, "p95": 0.002, "p99": 0.003, "errors": 0, "cpu": 5e-5, "pss": 2**26} | more


def results_of(**rates: list[float]) -> Results:
    """One workload at 8 connections: peer → rate in each round."""
    results = Results(dict(FACTS))
    for peer, each in rates.items():
        for number, rate in enumerate(each):
            results.add("constant", 8, peer, number, figures(rate))
    return results


def test_the_median_of_the_rounds_counts() -> None:
    results = results_of(tsctl=[10.0, 1000.0, 30.0], mosec=[20.0])

    assert results.median("constant", 8, "tsctl", "rate") == 30.0
    assert results.median("constant", 8, "mosec", "rate") == 20.0
    assert results.median("constant", 32, "mosec", "rate") is None


def test_results_survive_being_saved(tmp_path: Path) -> None:
    results = results_of(tsctl=[1.0])
    results.troubles.append("a trouble")

    results.save(tmp_path / "r.json")

    assert Results.load(tmp_path / "r.json") == results


def test_a_table_has_the_spread_and_our_ratio() -> None:
    made = page.load_table(results_of(tsctl=[300.0, 200.0, 250.0], mosec=[100.0, 125.0, 150.0]), "constant", 8)

    assert "| **tsctl** | 250 (200–300) | 1 | 2 | 3 | 50 | 64 | 0 |  |" in made
    assert "| mosec | 125 (100–150) | 1 | 2 | 3 | 50 | 64 | 0 | 2.00 × |" in made


def test_our_own_with_other_settings_are_compared_with_the_predecessor_and_nobody_loses_to_them() -> None:
    results = results_of(**{"tsctl": [100.0], "tsctl+bf16": [400.0], "torchserve": [50.0]})

    made = page.load_table(results, "constant", 8)

    assert "errors | tsctl is | by torchserve |" in made
    assert "| **tsctl+bf16** | 400 | 1 | 2 | 3 | 50 | 64 | 0 |  | 8.00 × |" in made
    assert "| torchserve | 50.0 | 1 | 2 | 3 | 50 | 64 | 0 | 2.00 × |  |" in made
    assert losses(results) == []


def test_a_wrong_answer_has_no_rate() -> None:
    results = results_of(tsctl=[1.0])
    results.add("constant", 8, "mosec", 0, figures(1e6, wrong=1))

    assert "| mosec | wrong answers |" in page.load_table(results, "constant", 8)


def test_what_we_lose_is_named_with_its_ratio_and_noise_is_not() -> None:
    results = results_of(tsctl=[100.0], mosec=[150.0], litserve=[101.0])

    (line,) = losses(results)

    assert "answers a second: better is mosec (1.50 × ours)" in line
    assert "litserve" not in line


def test_less_is_better_of_everything_but_the_rate() -> None:
    results = Results(dict(FACTS))
    results.add("constant", 8, "tsctl", 0, figures(100, pss=100.0, p99=0.004))
    results.add("constant", 8, "mosec", 0, figures(100, pss=50.0, p99=0.008))

    assert [line for line in losses(results) if "memory" in line]
    assert not [line for line in losses(results) if "p99" in line]


def test_who_never_serves_again_does_not_win() -> None:
    results = Results(dict(FACTS))
    results.add("kill", 0, "tsctl", 0, {"again": 0.2})
    results.add("kill", 0, "mosec", 0, {"again": float("inf")})

    assert losses(results) == []
    assert "| mosec |  |  |  | never |" in page.kill_table(results)


def test_what_a_slow_model_costs_a_fast_one_has_columns_of_its_own() -> None:
    results = Results(FACTS | {"workloads": ["beside"]})
    for peer, later in (("tsctl", 0.004), ("mosec", 0.2)):
        both = {"rate_beside": 50.0, "p50_beside": 0.002, "p99_beside": later}
        results.add("beside", 8, peer, 0, figures(100.0, **both))

    made = page.page(results)

    assert "| beside: answers/s | p50 ms | p99 ms |" in made
    assert "| mosec | 100 | 1 | 3 | 50.0 | 2 | 200 | 0 | 1.00 × |" in made
    assert losses(results) == []


def test_the_calls_over_one_connection_are_no_connections() -> None:
    assert (at("calls", 1), at("calls", 8)) == ("1 call in flight", "8 calls in flight")
    assert (at("constant", 1), at("constant", 8)) == ("1 connection", "8 connections")


def test_the_page_is_whole() -> None:
    results = results_of(tsctl=[100.0], mosec=[150.0])
    results.add("kill", 0, "tsctl", 0, {"lost": 1, "refused": 0, "hanging": 0, "again": 0.5})
    results.add("constant", 0, "tsctl", 0, {"first": 0.4})
    results.troubles.append("Constant answer, litserve: it fell over")

    made = page.page(results)

    for heading in ("Constant answer", "First answer", "The only worker killed", "Where we lose", "Caveats"):
        assert f"## {heading}" in made
    assert "| **tsctl** | 0.40 s |" in made
    assert "it fell over" in made
    assert "draft" not in made


def test_a_shortened_run_is_a_draft() -> None:
    results = results_of(tsctl=[1.0])
    results.facts["whole"] = False

    assert "**A draft:**" in page.page(results)


@pytest.mark.parametrize(("complete", "written"), [(True, "page.md"), (False, "draft.md")])
def test_only_a_whole_run_writes_the_page_of_the_documentation(
    complete: bool, written: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "DRAFT", tmp_path / "draft.md")
    results = results_of(tsctl=[1.0])
    results.facts["whole"] = complete

    assert page.write(results) == tmp_path / written
    assert [each.name for each in tmp_path.glob("*.md")] == [written]
    assert (tmp_path / written).with_suffix("").joinpath("constant.svg").is_file()


def test_losing_calls_are_named_by_those_in_flight() -> None:
    results = Results(FACTS | {"workloads": ["calls"]})
    results.add("calls", 8, "tsctl", 0, figures(100.0))
    results.add("calls", 8, "triton", 0, figures(200.0))

    [line] = losses(results)

    assert line.endswith("8 calls in flight: answers a second: better is triton (2.00 × ours).")


def test_pictures_are_xml_with_a_bar_for_each_server() -> None:
    drawn = page.pictures(results_of(tsctl=[100.0], mosec=[150.0]))

    root = ElementTree.fromstring(drawn["constant.svg"])
    bars = [each for each in root.iter() if each.tag.endswith("rect")]
    widths = [float(bar.attrib["width"]) for bar in bars]
    assert [bar.attrib["class"] for bar in bars] == ["o", "p"]
    assert widths[0] / widths[1] == pytest.approx(100 / 150, rel=0.01)


def test_a_curve_goes_through_its_points() -> None:
    drawn = svg.curves("t <&>", {"a": [(1, 5.0), (100, 5.0)], "b": [(10, 10.0)]}, "x", "y")

    lines = [each for each in ElementTree.fromstring(drawn).iter() if each.tag.endswith("polyline")]
    flat = [point.split(",") for point in lines[0].attrib["points"].split()]
    assert flat[0][1] == flat[1][1]
    assert len(lines) == 2


@pytest.mark.parametrize(("number", "first"), [(0, "a"), (1, "b"), (2, "c"), (3, "a")])
def test_each_round_another_server_begins(number: int, first: str) -> None:
    order = turns(["a", "b", "c"], number)

    assert order[0] == first
    assert sorted(order) == ["a", "b", "c"]


@pytest.mark.parametrize("arguments", [["--only", "nothing"], ["--peers", "apache"]])
def test_what_does_not_exist_is_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as error:
        options(arguments)

    assert error.value.code == 2


def test_a_part_can_be_chosen() -> None:
    given = options(["--only", "constant,kill", "--peers", "mosec", "--rounds", "1"])

    assert (given.only, given.peers, given.rounds) == (["constant", "kill"], ["mosec"], 1)


EXPECTED = {"7": 0.5, "3": 0.2, "9": 0.1}


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


def test_what_is_right_can_be_taken_more_loosely() -> None:
    served = Served("net", Path("photo"), lambda answer: same_classes(answer, EXPECTED), EXPECTED)

    assert not served.right(b'{"7": 0.52}')
    assert served.within(0.05).right(b'{"7": 0.52}')
    assert not served.within(0.05).right(b'{"7": 0.54}')


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
