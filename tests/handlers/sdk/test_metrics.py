"""Each measurement of a handler is one line in TorchServe's format."""

import re
from collections.abc import Callable

import pytest

from handlers.sdk.metrics import Dimension, MetricsCache, MetricTypes

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
        (counter, "Seen.count:2|#ModelName:net,Level:Model|#type:COUNTER", ",id-b"),
        (milliseconds, "Took.ms:1.5|#ModelName:net,Level:Model|#type:GAUGE", ""),
        (seconds, "Took.s:1.5|#ModelName:net,Level:Model|#type:GAUGE", ""),
        (size, "Held.kB:3|#ModelName:net,Level:Model|#type:GAUGE", ",id-a"),
        (percent, "Used.percent:50|#ModelName:net,Level:Model|#type:GAUGE", ""),
        (error, "Broken.:1|#ModelName:net,Level:Model|#type:COUNTER", ""),
        (dimensions, "Seen.count:1|#ModelName:net,Level:Model,Language:de|#type:COUNTER", ""),
        (histogram, "Sizes.count:9|#ModelName:net,Level:Model|#type:HISTOGRAM", ",some-id"),
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


@pytest.mark.parametrize("name", ["add_or_update", "update"])
def test_a_declared_metric_is_reported_under_both_names(
    metrics: MetricsCache, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = metrics.add_metric_to_cache("Heat", "C", ["Where"], MetricTypes.GAUGE)

    getattr(declared, name)(21.5, ["here"], "id-z")

    assert re.fullmatch(
        re.escape("[METRICS]Heat.C:21.5|#Where:here|#type:GAUGE") + TAIL + ",id-z\n", capsys.readouterr().out
    )


def test_a_metric_is_declared_once_for_each_type(metrics: MetricsCache) -> None:
    gauge = metrics.add_metric_to_cache("Heat", "C")
    again = metrics.add_metric_to_cache("Heat", "C")
    other = metrics.add_metric_to_cache("Heat", "C", metric_type=MetricTypes.COUNTER)

    assert gauge is again
    assert other is not gauge
    assert metrics.get_metric("Heat", MetricTypes.GAUGE) is gauge
    assert metrics.get_metric("Heat") is other
    assert metrics.cache[MetricTypes.GAUGE] == {"Heat": gauge}


def test_a_metric_nobody_declared_is_a_key_error(metrics: MetricsCache) -> None:
    with pytest.raises(KeyError, match="Heat"):
        metrics.get_metric("Heat")


def test_each_dimension_needs_a_value(metrics: MetricsCache) -> None:
    declared = metrics.add_metric_to_cache("Heat", "C", ["Where", "When"])

    with pytest.raises(ValueError, match=r"metric Heat has the dimensions \(Where, When\), not \['here'\]"):
        declared.add_or_update(1, ["here"])


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
