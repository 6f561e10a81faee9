"""A handler's measurements are combined until taken, and none of them is an error."""

import threading
from typing import Any

import pytest

from tsctl.daemon.workers.frames import check_measured
from tsctl.handlers import wire
from tsctl.handlers.sdk.metrics import Dimension, MetricsCache, MetricTypes
from tsctl.handlers.sdk.pending_metrics import PendingMetrics
from tsctl.handlers.wire import LONGEST_LABEL, MOST_LABELS, MOST_SERIES

WHERE = (("Where", "here"),)


class Grumpy:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.fixture
def tally() -> PendingMetrics:
    return PendingMetrics()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        pytest.param("counter", 6.5, id="a counter's increases are added up"),
        pytest.param("gauge", 2.5, id="of a gauge the last value counts"),
    ],
)
def test_values_become_one(kind: wire.Kind, value: float, tally: PendingMetrics) -> None:
    for number in (1, 3, 2.5):
        tally.add(kind, "Seen", "count", WHERE, number)

    assert tally.take_measurements() == [wire.Measurement(kind, "Seen", "count", WHERE, value)]
    assert tally.take_measurements() == []


def test_a_histogram_counts_values_by_bucket(tally: PendingMetrics) -> None:
    for number in (0.001, 0.0011, 7, 1e9):
        tally.add("histogram", "Took", "ms", (), number)

    (measured,) = tally.take_measurements()
    assert measured.value == pytest.approx(1e9 + 7.0021)
    assert {bound: count for bound, count in enumerate(measured.buckets) if count} == {
        0: 1, 1: 1, wire.BOUNDS.index(10.0): 1, len(wire.BOUNDS): 1,
    }  # fmt: skip


def test_other_dimensions_and_other_types_are_other_series(tally: PendingMetrics) -> None:
    tally.add("counter", "Seen", "", (), 1)
    tally.add("counter", "Seen", "", WHERE, 2)
    tally.add("gauge", "Seen", "", (), 3)

    assert [(each.kind, each.labels, each.value) for each in tally.take_measurements()] == [
        ("counter", (), 1.0), ("counter", WHERE, 2.0), ("gauge", (), 3.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "labels", "value"),
    [
        pytest.param("counter", (), "many", id="no number"),
        pytest.param("counter", (), None, id="nothing"),
        pytest.param("counter", (), -1, id="a counter does not fall"),
        pytest.param("counter", (), float("nan"), id="a counter of not a number"),
        pytest.param("histogram", (), float("inf"), id="a histogram of infinity"),
        pytest.param("gauge", ((Grumpy(), "x"),), 1, id="a label without a text"),
    ],
)
def test_what_cannot_be_shown_is_not_kept(kind: wire.Kind, labels: Any, value: Any, tally: PendingMetrics) -> None:
    tally.add(kind, "Seen", "", labels, value)

    assert tally.take_measurements() == []


@pytest.mark.parametrize("kind", ["counter", "gauge", "histogram"])
@pytest.mark.parametrize(
    ("name", "labels", "values"),
    [
        pytest.param("n" * 10**6, (), [1.0], id="a long name"),
        pytest.param("n", (("l" * 10**6, "v" * 10**6),), [1.0], id="long labels"),
        pytest.param("n", ((f"l{i}", "v") for i in range(MOST_LABELS + 1)), [1.0], id="too many labels"),
        pytest.param("n", (), [1e308] * 3, id="a sum without end"),
        pytest.param("a\ud800", (("b\ud800", "c\ud800"),), [1.0], id="half a surrogate pair"),
        pytest.param("n", (), [float("nan"), -1.0, float("inf")], id="what is no number"),
        pytest.param("n", (), [-1.0], id="what falls"),
    ],
)
def test_whatever_a_handler_reports_is_a_message_to_the_daemon(
    kind: wire.Kind, name: str, labels: Any, values: list[float], tally: PendingMetrics
) -> None:
    for value in values:
        tally.add(kind, name, name, tuple(labels), value)

    said = wire.Done(1, [], 0.0, tally.take_measurements())

    heard = wire.decode_for_daemon(bytes(wire.encode(said))[wire.LENGTH.size :])
    assert isinstance(heard, wire.Done)
    check_measured(heard.measured)
    assert all(len(each.name) <= LONGEST_LABEL for each in heard.measured)


def test_a_dimension_that_never_repeats_does_not_fill_the_memory(tally: PendingMetrics) -> None:
    for number in range(MOST_SERIES + 5):
        tally.add("counter", "Seen", "", (("Request", number),), 1)
    tally.add("counter", "Seen", "", (("Request", 0),), 1)

    taken = tally.take_measurements()
    assert len(taken) == MOST_SERIES
    assert taken[0].value == 2.0


def test_threads_lose_nothing(tally: PendingMetrics) -> None:
    taken: list[wire.Measurement] = []

    def report() -> None:
        for _ in range(2000):
            tally.add("counter", "Seen", "", (), 1)

    threads = [threading.Thread(target=report) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        taken += tally.take_measurements()
    taken += tally.take_measurements()

    assert sum(each.value for each in taken) == 8000


def test_what_context_metrics_is_told_is_kept() -> None:
    metrics = MetricsCache("net")
    declared = metrics.add_metric_to_cache("Heat", "C", ["Where"])

    other = metrics.add_metric_to_cache("Heat", "C", ["When"])
    declared.add_or_update(21, ["here"])
    other.add_or_update(2, ["now"])
    metrics.add_counter("Seen", 2, dimensions=[Dimension("Language", "de")])

    assert metrics.tally.take_measurements() == [
        wire.Measurement("counter", "Heat", "C", WHERE, 21.0),
        wire.Measurement("counter", "Heat", "C", (("When", "now"),), 2.0),
        wire.Measurement("counter", "Seen", "Count", (("Language", "de"), ("ModelName", "net"), ("Level", "Model")), 2),
    ]


def test_a_name_may_come_again_with_other_dimensions_and_another_type() -> None:
    metrics = MetricsCache("net")

    metrics.add_counter("Seen", 1)
    metrics.add_counter("Seen", 2, dimensions=[Dimension("Language", "de")])
    metrics.add_counter("Seen", 3)
    metrics.add_metric("Seen", 4, "count", metric_type=MetricTypes.HISTOGRAM)

    assert [(each.kind, len(each.labels), each.value) for each in metrics.tally.take_measurements()] == [
        ("counter", 2, 4.0), ("counter", 3, 2.0), ("histogram", 2, 4.0),
    ]  # fmt: skip
