"""The text of OpenMetrics, as the library's strict parser reads it, and its examples of recorded requests."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.metrics.reading import registered, render, report, values
from tests.metrics.test_exposition import everything
from tests.metrics.test_metrics import run
from tsctl.daemon.metrics import families
from tsctl.daemon.metrics.exposition import MetricFamily, family, histograms, texts, wants_open
from tsctl.daemon.metrics.histogram import SECONDS, Exemplars, Histogram, LatencyExample

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def openly(made: list[MetricFamily]) -> str:
    return b"".join(texts(made, openly=True)).decode()


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("", False, id="nothing is said"),
        pytest.param("*/*", False, id="anything"),
        pytest.param("text/plain", False, id="text"),
        pytest.param("application/openmetrics-text", True, id="OpenMetrics"),
        pytest.param(
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1", True,
            id="as Prometheus asks",
        ),
        pytest.param("text/plain, application/openmetrics-text;q=0.5", False, id="rather text"),
        pytest.param("application/openmetrics-text;q=0", False, id="anything else"),
        pytest.param("application/openmetrics-text;q=much", False, id="a weight that is none"),
    ],
)  # fmt: skip
def test_which_clients_ask_for_openmetrics(accept: str, expected: bool) -> None:
    assert wants_open(accept) is expected


def test_all_metrics_are_read_by_the_strict_parser_and_are_the_same() -> None:
    metrics = registered("m/1.0", "n/2.0")
    for version in metrics.versions:
        run(version)
        report(version, "counter", "rows_total", 3, language='d"e\n')
        report(version, "gauge", "heat_celsius", 21)
        report(version, "histogram", "words", 70)
    metrics.events = None
    ours = list(everything(metrics))

    text = openly(ours)

    parsed = list(text_string_to_metric_families(text))
    assert text.endswith("# EOF\n") and text.count("# EOF") == 1
    kinds = {each.name: each.type for each in parsed}
    assert (kinds["tsctl_batches"], kinds["Requests2XX"], kinds["rows"]) == ("counter", "unknown", "counter")
    read = {sample.name: sample.value for each in parsed for sample in each.samples}
    assert read.keys() == {name.partition("{")[0] for name in values(render(everything(metrics)).decode())}


def test_a_bucket_shows_its_latest_example_to_those_who_ask_for_openmetrics() -> None:
    histogram = Histogram((0.001, 1.0))
    histogram.add((1, 2, 0), 0.5)
    made = histograms("x_seconds", "Time", [({"model": "m"}, histogram)], [{1: LatencyExample(TRACE, 0.25, 1000.5)}])

    (parsed,) = text_string_to_metric_families(openly([made]))

    found = {sample.labels["le"]: sample.exemplar for sample in parsed.samples if sample.exemplar}
    (exemplar,) = found.values()
    assert list(found) == ["1.0"]
    assert (exemplar.labels, exemplar.value, float(exemplar.timestamp)) == ({"trace_id": TRACE}, 0.25, 1000.5)
    assert TRACE not in render([made]).decode()


def test_examples_are_one_for_each_bucket_and_outcome() -> None:
    exemplars = Exemplars()

    for index in range(10_000):
        exemplars.note("ok", LatencyExample(f"{index:032x}", index / 10, 1000.0))
    exemplars.note("error", LatencyExample(TRACE, 0.0001, 1000.0))

    assert len(exemplars.of("ok")) <= len(SECONDS) + 1
    assert exemplars.of("ok")[len(SECONDS)].seconds == 999.9
    assert [example.trace_id for example in exemplars.of("error").values()] == [TRACE]
    assert exemplars.of("expired") == {}


def test_the_latency_of_a_version_shows_its_recorded_requests() -> None:
    metrics = registered("m/1.0")
    (version,) = metrics.versions
    run(version)
    version.exemplars = Exemplars()
    version.exemplars.note("ok", LatencyExample(TRACE, 0.02, 1000.0))

    text = openly(list(families.ours(metrics)))

    (line,) = (line for line in text.splitlines() if TRACE in line)
    assert line.startswith('tsctl_request_latency_seconds_bucket{le="0.025",model="m",outcome="ok",version="1.0"}')


def test_a_version_that_is_not_traced_keeps_no_examples() -> None:
    assert registered("m/1.0").versions[0].exemplars is None


def test_a_counter_without_its_ending_is_of_unknown_type() -> None:
    text = openly([family("Requests2XX", "counter", "Answers", [({"Level": "Host"}, 3)])])

    assert text == '# HELP Requests2XX Answers\n# TYPE Requests2XX unknown\nRequests2XX{Level="Host"} 3.0\n# EOF\n'
