"""TorchServe's older metrics, as users' handlers and tests use them."""

import re

import pytest

from tsctl.handlers.sdk.metrics import Dimension
from tsctl.handlers.torchserve.metrics_store import Metric, MetricsStore, emit_metrics


@pytest.fixture
def store() -> MetricsStore:
    return MetricsStore({0: "id-a", 1: "id-b"}, "net")


def test_each_kind_of_metric_is_collected_with_its_unit_and_labels(store: MetricsStore) -> None:
    store.add_counter("Seen", 1, 0)
    store.add_time("Took", 2.5, unit="s")
    store.add_size("Size", 3, 1, "kB", [Dimension("Kind", "body")])
    store.add_percent("Share", 4)
    store.add_error("Broken", "why")
    store.add_metric("Other", 5, "pages", 1)

    found = [
        (each.name, each.value, each.unit, each.request_id, list(map(str, each.dimensions))) for each in store.store
    ]
    model = ["ModelName:net", "Level:Model"]
    assert found == [
        ("Seen", 1, "Count", "id-a", model),
        ("Took", 2.5, "Seconds", "id-a,id-b", model),
        ("Size", 3, "Kilobytes", "id-b", ["Kind:body", *model]),
        ("Share", 4, "Percent", "id-a,id-b", model),
        ("Broken", "why", "unit", None, ["Level:Error"]),
        ("Other", 5, "pages", "id-b", model),
    ]


def test_the_labels_of_a_caller_are_not_added_to(store: MetricsStore) -> None:
    labels = [Dimension("Kind", "body")]

    store.add_counter("Seen", 1, 0, labels)
    store.add_counter("Seen", 1, 0, labels)

    assert len(labels) == 1
    assert len(store.store) == 1


def test_a_second_value_of_a_metric_is_reported(store: MetricsStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.add_counter("Seen", 1, 0)
    quiet = capsys.readouterr().out
    store.add_counter("Seen", 2, 0)

    assert quiet == ""
    line = capsys.readouterr().out
    assert re.fullmatch(
        r"\[METRICS\]Seen\.Count:2\|#ModelName:net,Level:Model\|#type:COUNTER\|#hostname:.+,\d+,id-a\n", line
    )


@pytest.mark.parametrize(("method", "unit"), [("add_time", "h"), ("add_size", "TB")])
def test_another_unit_is_refused(store: MetricsStore, method: str, unit: str) -> None:
    with pytest.raises(ValueError, match=f"not {unit}"):
        getattr(store, method)("Name", 1, None, unit)


def test_emitted_metrics_are_lines_of_the_models_log(capsys: pytest.CaptureFixture[str]) -> None:
    emit_metrics([Metric("Seen", 1, "count", [Dimension("Kind", "x")], "id-a"), Metric("Took", 2, "ms", [])])

    Metric("Seen", 1, "count", [Dimension("Kind", "x")]).reset()

    first, second, third = capsys.readouterr().out.splitlines()
    assert third.startswith("[METRICS]Seen.Count:0|#Kind:x|#type:COUNTER|")
    assert re.fullmatch(r"\[METRICS\]Seen\.Count:1\|#Kind:x\|#hostname:.+,\d+,id-a", first)
    assert re.fullmatch(r"\[METRICS\]Took\.Milliseconds:2\|#\|#hostname:.+,\d+", second)


def test_a_metric_is_a_dict_too() -> None:
    label = Dimension("Kind", "x")

    document = Metric("Seen", 1, "count", [label], "id-a").to_dict()

    assert list(document) == ["MetricName", "Value", "Unit", "Dimensions", "Timestamp", "HostName", "RequestId"]
    assert (document["MetricName"], document["Dimensions"], document["RequestId"]) == ("Seen", [label], "id-a")
