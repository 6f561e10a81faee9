"""The text of families, and that of OpenMetrics, as the library's strict parser reads it."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.extensions.exposition.reading import render
from tests.metrics.reading import types, values
from tsctl.daemon.extensions.exposition.text import MetricFamily, family, histograms, texts, wants_open
from tsctl.daemon.metrics.histogram import Histogram, LatencyExample

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_counter_keeps_its_name() -> None:
    text = render([family("Requests2XX", "counter", "Answers", [({"Level": "Host"}, 3)])]).decode()

    assert text == '# HELP Requests2XX Answers\n# TYPE Requests2XX counter\nRequests2XX{Level="Host"} 3.0\n'
    assert render([family("Nothing", "gauge", "", [])]) == b"", "without samples"


def test_a_histograms_buckets_add_up_and_its_last_is_endless() -> None:
    histogram = Histogram((0.001, 1.0))
    histogram.add((1, 2, 3), 7.5)

    text = render([histograms("x_seconds", "Time", [({"model": "m"}, histogram)])]).decode()

    assert types(text) == {"x_seconds": "histogram"}
    assert values(text) == {
        "x_seconds_bucket{le=0.001,model=m}": 1,
        "x_seconds_bucket{le=1.0,model=m}": 3,
        "x_seconds_bucket{le=+Inf,model=m}": 6,
        "x_seconds_count{model=m}": 6,
        "x_seconds_sum{model=m}": 7.5,
    }


@pytest.mark.parametrize(
    ("names", "told"),
    [
        pytest.param([], 7, id="nothing is asked for"),
        pytest.param(["Heat"], 1, id="a family"),
        pytest.param(["Took"], 5, id="a family with all its samples"),
        pytest.param(["Took_sum", "Requests2XX"], 2, id="samples"),
        pytest.param(["Unknown"], 0, id="something that is not there"),
    ],
)
def test_names_choose_what_is_told(names: list[str], told: int) -> None:
    made = [
        family("Heat", "gauge", "", [({}, 1)]),
        family("Requests2XX", "counter", "", [({}, 1)]),
        histograms("Took", "", [({}, Histogram((1.0, 2.0)))]),
    ]

    assert len(values(render(made, names).decode())) == told


@pytest.mark.parametrize("openly", [False, True], ids=["text", "OpenMetrics"])
def test_a_large_family_is_written_in_slices_that_are_one_family_together(openly: bool) -> None:
    values = [({"model": f"m{index}"}, index) for index in range(2 * MetricFamily.at_once + 1)]
    small = b"".join(texts([family("jobs", "gauge", "Jobs", values[:3])], openly=openly))

    pieces = list(texts([family("jobs", "gauge", "Jobs", values)], openly=openly))

    assert len(pieces) == 3 + openly
    whole = b"".join(pieces).splitlines()
    assert whole[:5] == small.splitlines()[:5]
    assert [line.count(b"#") for line in whole[2 : 2 + len(values)]] == [0] * len(values)
    assert len(whole) == 2 + len(values) + openly


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


def test_a_bucket_shows_its_latest_example_to_those_who_ask_for_openmetrics() -> None:
    histogram = Histogram((0.001, 1.0))
    histogram.add((1, 2, 0), 0.5)
    made = histograms("x_seconds", "Time", [({"model": "m"}, histogram)], [{1: LatencyExample(TRACE, 0.25, 1000.5)}])

    (parsed,) = text_string_to_metric_families(b"".join(texts([made], openly=True)).decode())

    found = {sample.labels["le"]: sample.exemplar for sample in parsed.samples if sample.exemplar}
    (exemplar,) = found.values()
    assert list(found) == ["1.0"]
    assert (exemplar.labels, exemplar.value, float(exemplar.timestamp)) == ({"trace_id": TRACE}, 0.25, 1000.5)
    assert TRACE not in render([made]).decode()


def test_a_counter_without_its_ending_is_of_unknown_type() -> None:
    answers = family("Requests2XX", "counter", "Answers", [({"Level": "Host"}, 3)])

    text = b"".join(texts([answers], openly=True)).decode()

    assert text == '# HELP Requests2XX Answers\n# TYPE Requests2XX unknown\nRequests2XX{Level="Host"} 3.0\n# EOF\n'
