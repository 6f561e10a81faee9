"""Each measurement of a handler is one line in TorchServe's format."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tsctl.handlers.sdk.metrics import CachingMetric, Dimension, MetricsCache, MetricTypes

TAIL = r"\|#hostname:[^,|]+,\d{10}"


@pytest.fixture
def metrics() -> MetricsCache:
    cache = MetricsCache("net")
    cache.request_ids = {0: "id-a", 1: "id-b"}
    return cache


def counter(metrics: MetricsCache) -> None:
    metrics.add_counter("Seen", 2, idx=1)


def milliseconds(metrics: MetricsCache) -> None:
    metrics.add_time("Took", 1.5)


def seconds(metrics: MetricsCache) -> None:
    metrics.add_time("Took", 1.5, unit="s")


def size(metrics: MetricsCache) -> None:
    metrics.add_size("Held", 3, idx=0, unit="kB")


def percent(metrics: MetricsCache) -> None:
    metrics.add_percent("Used", 50)


def error(metrics: MetricsCache) -> None:
    metrics.add_error("Broken", 1)


def dimensions(metrics: MetricsCache) -> None:
    metrics.add_counter("Seen", 1, dimensions=[Dimension("Language", "de")])


def histogram(metrics: MetricsCache) -> None:
    metrics.add_metric("Sizes", 9, "count", "some-id", metric_type=MetricTypes.HISTOGRAM)


@pytest.mark.parametrize(
    ("report", "head", "request_id"),
    [
        (counter, "Seen.Count:2|#ModelName:net,Level:Model|#type:COUNTER", ",id-b"),
        (milliseconds, "Took.Milliseconds:1.5|#ModelName:net,Level:Model|#type:GAUGE", ",id-a,id-b"),
        (seconds, "Took.Seconds:1.5|#ModelName:net,Level:Model|#type:GAUGE", ",id-a,id-b"),
        (size, "Held.Kilobytes:3|#ModelName:net,Level:Model|#type:GAUGE", ",id-a"),
        (percent, "Used.Percent:50|#ModelName:net,Level:Model|#type:GAUGE", ",id-a,id-b"),
        (error, "Broken.unit:1|#Level:Error|#type:COUNTER", ""),
        (dimensions, "Seen.Count:1|#Language:de,ModelName:net,Level:Model|#type:COUNTER", ",id-a,id-b"),
        (histogram, "Sizes.Count:9|#ModelName:net,Level:Model|#type:HISTOGRAM", ",some-id"),
    ],
)
def test_a_report_is_one_line(
    metrics: MetricsCache,
    report: Callable[[MetricsCache], None],
    head: str,
    request_id: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    report(metrics)

    assert re.fullmatch(re.escape(f"[METRICS]{head}") + TAIL + request_id + "\n", capsys.readouterr().out)


def report_values(metric: CachingMetric) -> None:
    metric.add_or_update(21.5, ["here"], "id-z")


def report_dimensions(metric: CachingMetric) -> None:
    metric.update(21.5, "id-z", [Dimension("Where", "here")])


@pytest.mark.parametrize("report", [report_values, report_dimensions])
def test_a_declared_metric_takes_values_or_dimensions(
    metrics: MetricsCache, report: Callable[[CachingMetric], None], capsys: pytest.CaptureFixture[str]
) -> None:
    report(metrics.add_metric_to_cache("Heat", "C", ["Where"], MetricTypes.GAUGE))

    assert re.fullmatch(
        re.escape("[METRICS]Heat.C:21.5|#Where:here|#type:GAUGE") + TAIL + ",id-z\n", capsys.readouterr().out
    )


def test_a_metric_is_declared_for_its_type(metrics: MetricsCache) -> None:
    gauge = metrics.add_metric_to_cache("Heat", "C", metric_type=MetricTypes.GAUGE)
    counter = metrics.add_metric_to_cache("Heat", "C")

    assert metrics.get_metric("Heat", MetricTypes.GAUGE) is gauge
    assert metrics.get_metric("Heat") is counter
    assert metrics.cache[MetricTypes.GAUGE] == {"Heat": gauge}


def test_a_metric_that_is_declared_again_is_the_new_one(metrics: MetricsCache) -> None:
    before = metrics.add_metric_to_cache("Heat", "C")
    after = metrics.add_metric_to_cache("Heat", "K")

    assert metrics.get_metric("Heat") is after
    assert (before.unit, after.unit) == ("C", "K")


def test_a_metric_nobody_declared_is_a_key_error_with_the_remedy(metrics: MetricsCache) -> None:
    with pytest.raises(KeyError, match=r"no counter `Heat` is declared; declare it .* `metrics_config`"):
        metrics.get_metric("Heat")


def test_an_operators_metric_is_known_to_the_handler(metrics: MetricsCache) -> None:
    metrics.declare([("gauge", "RequestBatchSize", "count", ["ModelName"])])

    found = metrics.get_metric("RequestBatchSize", MetricTypes.GAUGE)

    assert (found.unit, found.dimension_names) == ("Count", ["ModelName"])


@pytest.mark.parametrize(
    ("declared", "line"),
    [
        pytest.param(["ModelName", "Level"], "Took.Milliseconds:5|#ModelName:net,Level:Model", id="as reported"),
        pytest.param(["Level", "ModelName"], "Took.Milliseconds:5|#Level:Model,ModelName:net", id="in another order"),
        pytest.param(["Model", "Where"], "Took.Milliseconds:5|#Model:net,Where:Model", id="by position"),
    ],
)
def test_an_operators_metric_keeps_its_dimensions(
    metrics: MetricsCache, declared: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics.declare([("gauge", "Took", "ms", declared)])

    metrics.add_time("Took", 5)

    assert capsys.readouterr().out.startswith(f"[METRICS]{line}|#type:GAUGE|#hostname:")


def few_values(metrics: MetricsCache) -> None:
    metrics.add_metric_to_cache("Heat", "C", ["Where", "When"]).add_or_update(1, ["here"])


def falling_counter(metrics: MetricsCache) -> None:
    metrics.add_metric_to_cache("Heat", "C").add_or_update(-1)


def other_dimensions(metrics: MetricsCache) -> None:
    metrics.declare([("counter", "Heat", "C", ["Where"])])
    metrics.add_counter("Heat", 1)


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (few_values, "its dimensions are (Where, When), not ['here']; the value 1 is dropped"),
        (falling_counter, "a counter cannot fall; the value -1 is dropped"),
        (other_dimensions, "its dimensions are (Where), not ['net', 'Model']; the value 1 is dropped"),
    ],
)
def test_a_value_that_does_not_fit_is_dropped_with_a_line(
    metrics: MetricsCache, report: Callable[[MetricsCache], None], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report(metrics)

    assert capsys.readouterr().out == f"metric `Heat`: {why}\n"
    assert metrics.tally.take() == []


@pytest.mark.parametrize(
    "arguments",
    [(3, "C"), ("Heat", 3), ("Heat", "C", "Where"), ("Heat", "C", ["Where"], "gauge")],
    ids=["name", "unit", "dimensions", "type"],
)
def test_a_declaration_of_another_type_is_refused(metrics: MetricsCache, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="; pass a "):
        metrics.add_metric_to_cache(*arguments)


def test_dimensions_of_one_report_do_not_stay_for_the_next(
    metrics: MetricsCache, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics.add_counter("Seen", 1, dimensions=[Dimension("Language", "de")])
    metrics.add_counter("Other", 1)

    assert "Language" not in capsys.readouterr().out.splitlines()[1]


@pytest.mark.parametrize(
    ("method", "unit", "units"), [("add_time", "min", "ms or s"), ("add_size", "TB", "MB, kB, GB or B")]
)
def test_a_unit_that_is_not_known_is_refused(metrics: MetricsCache, method: str, unit: str, units: str) -> None:
    with pytest.raises(ValueError, match=f"is {units}, not {unit}"):
        getattr(metrics, method)("Took", 1, unit=unit)


def test_a_dimension_reads_as_name_and_value() -> None:
    assert str(Dimension("Language", "de")) == "Language:de"
