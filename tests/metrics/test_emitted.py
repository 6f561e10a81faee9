"""Handlers' metrics are shown under any name, and the text stays valid for Prometheus."""

import json
import logging

import pytest

from tests.kit.said import said_in
from tests.metrics.reading import registered, render, report, shown, types
from tsctl.daemon.metrics.emitted import LONGEST_VALUE, MOST_SERIES
from tsctl.daemon.metrics.families import emitted
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.handlers import wire
from tsctl.handlers.wire import STAGE_TIME

M = "ModelName=m,ModelVersion=1.0"


@pytest.fixture
def version() -> VersionMetrics:
    return VersionMetrics("m", "1.0")


def shown_of(version: VersionMetrics) -> dict[str, float]:
    metrics = registered()
    metrics.add(version)
    return shown(emitted(metrics))


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

    assert shown_of(version) == lines


def test_a_histogram_is_shown_by_its_buckets(version: VersionMetrics) -> None:
    for value in (0.02, 0.02, 20000):
        report(version, "histogram", "Took", value)

    lines = shown_of(version)
    assert lines[f"Took_sum{{{M}}}"] == 20000.04
    assert lines[f"Took_count{{{M}}}"] == lines[f"Took_bucket{{{M},le=+Inf}}"] == 3
    assert lines[f"Took_bucket{{{M},le=0.01}}"] == 0
    assert lines[f"Took_bucket{{{M},le=0.025}}"] == lines[f"Took_bucket{{{M},le=10000.0}}"] == 2
    report(version, "histogram", "Took", 1, le="x")
    assert f"Took_count{{{M},exported_le=x}}" in shown_of(version), "a bucket's label steps aside"
    buckets = list(range(len(wire.BOUNDS) + 1))
    version.emitted.add_measurements([wire.Measurement("histogram", "Whole", "", (), 1.5, buckets)])
    assert shown_of(version)[f"Whole_count{{{M}}}"] == sum(buckets)


@said_in("names.txt")
def test_names_and_labels(given: str, version: VersionMetrics) -> str:
    name, dimensions = json.loads(given)
    before = shown_of(version)
    report(version, "gauge", name, 1, **dimensions)
    return "\n".join(sorted(shown_of(version).keys() - before.keys()))


def test_a_name_keeps_its_first_type(version: VersionMetrics, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tsctl.daemon.metrics"):
        report(version, "counter", "Seen", 1)
        report(version, "gauge", "Seen", 7)
        report(version, "gauge", "Seen", 8)

    assert shown_of(version) == {f"Seen{{{M}}}": 1}
    assert version.emitted.dropped == {"type": 2}
    assert [record.getMessage() for record in caplog.records] == [
        "metrics of the handler of m/1.0: `Seen` is a counter, and cannot be a gauge too; what it reports is dropped"
    ]


@pytest.mark.parametrize(
    "name", ["Requests2XX", "QueueTime", "PredictionTime", "ts_inference_requests_total", "tsctl_batches_total", ""]
)
def test_a_name_that_is_taken_is_not_a_handlers(version: VersionMetrics, name: str) -> None:
    report(version, "counter", name, 1)

    assert shown_of(version) == {}
    assert version.emitted.dropped == {"name": 1}


def test_series_without_end_are_cut_off(version: VersionMetrics) -> None:
    for number in range(MOST_SERIES + 3):
        report(version, "counter", "Seen", 1, Request=str(number))
    report(version, "counter", "Seen", 1, Request="0")

    assert len(shown_of(version)) == MOST_SERIES
    assert shown_of(version)[f"Seen{{{M},Request=0}}"] == 2
    assert version.emitted.dropped == {"limit": 3}


def test_of_two_versions_types_the_later_registered_counts(caplog: pytest.LogCaptureFixture) -> None:
    metrics = registered("m/1", "m/2")
    old, new = metrics.versions
    report(old, "counter", "Seen", 1)
    report(new, "gauge", "Seen", 2)

    with caplog.at_level(logging.WARNING, "tsctl.daemon.metrics"):
        assert shown(emitted(metrics)) == {"Seen{ModelName=m,ModelVersion=2}": 2}
        assert shown(emitted(metrics)) == {"Seen{ModelName=m,ModelVersion=2}": 2}
    sentence = "metrics of handlers: `Seen` is a gauge in one version and a counter in another, and is not shown"
    assert [record.getMessage() for record in caplog.records] == [sentence]

    metrics.remove(new)
    assert shown(emitted(metrics)) == {"Seen{ModelName=m,ModelVersion=1}": 1}


def test_equal_lines_of_two_versions_become_one() -> None:
    metrics = registered("m/1", "m/2")
    for number, version in enumerate(metrics.versions, 1):
        own = {"ModelName": "m", "ModelVersion": "any"}
        report(version, "counter", "Seen", number, **own)
        report(version, "gauge", "Heat", number, **own)
        report(version, "histogram", "Took", number, **own)
    report(metrics.versions[0], "gauge", "Heat", 9, ModelName="m", ModelVersion="any")

    lines = shown(emitted(metrics))
    assert lines["Seen{ModelName=m,ModelVersion=any}"] == 3
    assert lines["Heat{ModelName=m,ModelVersion=any}"] == 9
    assert lines["Took_count{ModelName=m,ModelVersion=any}"] == 2
    assert lines["Took_sum{ModelName=m,ModelVersion=any}"] == 3


@pytest.mark.parametrize("last", [0, 1], ids=["the one registered first", "the one registered last"])
def test_of_equal_gauges_the_one_set_last_counts(last: int) -> None:
    metrics = registered("m/1", "m/2")
    own = {"ModelName": "m", "ModelVersion": "any"}
    report(metrics.versions[1 - last], "gauge", "Heat", 1, **own)
    report(metrics.versions[last], "gauge", "Heat", 2, **own)

    assert shown(emitted(metrics)) == {"Heat{ModelName=m,ModelVersion=any}": 2}


def test_a_histograms_lines_are_its_own(version: VersionMetrics) -> None:
    report(version, "histogram", "Took", 1)
    report(version, "counter", "Took_count", 5)
    report(version, "counter", "Other_count", 6)
    metrics = registered()
    metrics.add(version)

    assert types(render(emitted(metrics)).decode()) == {"Took": "histogram", "Other_count": "counter"}


def test_a_counter_may_end_like_ours_or_not() -> None:
    metrics = registered("m/1.0")
    for name in ("Seen", "Seen_total", "Seen_created"):
        report(metrics.versions[0], "counter", name, 1, "count")

    text = render(emitted(metrics)).decode()
    assert types(text) == {"Seen": "counter", "Seen_total": "counter", "Seen_created": "counter"}
    assert "# HELP Seen Emitted by a handler, in count\n" in text


def test_the_stages_of_a_built_in_handler_are_ours_and_nothing_else_of_that_name_is() -> None:
    version = VersionMetrics("m", "1.0")
    report(version, "histogram", STAGE_TIME, 0.2, "s", stage="inference")
    report(version, "histogram", STAGE_TIME, 0.2, "s", stage="lunch")
    report(version, "counter", STAGE_TIME, 0.2, "s", stage="inference")

    assert {stage: sum(each.counts) for stage, each in version.emitted.stages.items()} == {
        "preprocess": 0, "inference": 1, "postprocess": 0,
    }  # fmt: skip
    assert version.emitted.dropped == {"name": 2}
