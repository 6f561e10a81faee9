"""Handlers' metrics are kept under any name, as Prometheus takes it."""

import json
import logging

import pytest

from tests.kit.said import said_in
from tests.metrics.reading import report, series_of
from tsctl.daemon.metrics.emitted import LONGEST_VALUE, MOST_SERIES
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.handlers import wire
from tsctl.handlers.wire import STAGE_TIME

M = "ModelName=m,ModelVersion=1.0"


@pytest.fixture
def version() -> VersionMetrics:
    return VersionMetrics("m", "1.0")


@pytest.mark.parametrize(
    ("kind", "reports", "lines"),
    [
        pytest.param("counter", [("Seen", 2, {}), ("Seen", 3, {})], {f"Seen{{{M}}}": 5}, id="a counter is added up"),
        pytest.param("gauge", [("Heat", 30, {}), ("Heat", -20, {})], {f"Heat{{{M}}}": -20}, id="a gauge's last value"),
        pytest.param("counter", [("a.b", 1, {}), ("a-b", 2, {})], {f"a_b{{{M}}}": 3}, id="two names that become one"),
        pytest.param(
            "counter", [("Seen", 1, {}), ("Seen", 2, {"Language": "de"})],
            {f"Seen{{{M}}}": 1, f"Seen{{Language=de,{M}}}": 2}, id="a line for each of other dimensions"),
        pytest.param(
            "gauge", [("Seen", 1, {"Text": "x" * 1000})], {f"Seen{{{M},Text={'x' * LONGEST_VALUE}}}": 1},
            id="a long value is cut"),
    ],
)  # fmt: skip
def test_reports_become_lines(
    version: VersionMetrics, kind: wire.Kind, reports: list[tuple[str, float, dict[str, str]]], lines: dict[str, float]
) -> None:
    for name, value, dimensions in reports:
        report(version, kind, name, value, **dimensions)

    assert series_of(version) == lines


@said_in("names.txt")
def test_names_and_labels(given: str, version: VersionMetrics) -> str:
    name, dimensions = json.loads(given)
    before = series_of(version)
    report(version, "gauge", name, 1, **dimensions)
    return "\n".join(sorted(each.replace("\n", r"\n") for each in series_of(version).keys() - before.keys()))


def test_a_name_keeps_its_first_type(version: VersionMetrics, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tsctl.daemon.metrics"):
        report(version, "counter", "Seen", 1)
        report(version, "gauge", "Seen", 7)
        report(version, "gauge", "Seen", 8)

    assert series_of(version) == {f"Seen{{{M}}}": 1}
    assert version.emitted.dropped == {"type": 2}
    assert [record.getMessage() for record in caplog.records] == [
        "metrics of the handler of m/1.0: `Seen` is a counter, and cannot be a gauge too; what it reports is dropped"
    ]


@pytest.mark.parametrize(
    "name", ["Requests2XX", "QueueTime", "PredictionTime", "ts_inference_requests_total", "tsctl_batches_total", ""]
)
def test_a_name_that_is_taken_is_not_a_handlers(version: VersionMetrics, name: str) -> None:
    report(version, "counter", name, 1)

    assert series_of(version) == {}
    assert version.emitted.dropped == {"name": 1}


def test_series_without_end_are_cut_off(version: VersionMetrics) -> None:
    for number in range(MOST_SERIES + 3):
        report(version, "counter", "Seen", 1, Request=str(number))
    report(version, "counter", "Seen", 1, Request="0")

    assert len(series_of(version)) == MOST_SERIES
    assert series_of(version)[f"Seen{{{M},Request=0}}"] == 2
    assert version.emitted.dropped == {"limit": 3}


def test_the_stages_of_a_built_in_handler_are_ours_and_nothing_else_of_that_name_is() -> None:
    version = VersionMetrics("m", "1.0")
    report(version, "histogram", STAGE_TIME, 0.2, "s", stage="inference")
    report(version, "histogram", STAGE_TIME, 0.2, "s", stage="lunch")
    report(version, "counter", STAGE_TIME, 0.2, "s", stage="inference")

    assert {stage: sum(each.counts) for stage, each in version.emitted.stages.items()} == {
        "preprocess": 0, "inference": 1, "postprocess": 0,
    }  # fmt: skip
    assert version.emitted.dropped == {"name": 2}


def test_a_histogram_keeps_all_its_buckets(version: VersionMetrics) -> None:
    for value in (0.02, 0.02, 20000):
        report(version, "histogram", "Took", value)
    report(version, "histogram", "Took", 1, le="x")

    whole, other = version.emitted.series
    assert whole.histogram.sum == 20000.04
    assert sum(whole.histogram.counts) == 3 and whole.histogram.counts[-1] == 1
    assert other.labels["exported_le"] == "x", "a bucket's label steps aside"
