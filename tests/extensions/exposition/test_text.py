"""The text of families, as a client asks for it."""

import pytest

from tests.extensions.exposition.reading import render
from tests.metrics.reading import values
from tsctl.daemon.extensions.exposition.text import family, histograms, texts, wants_open
from tsctl.daemon.metrics.histogram import Histogram


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


def test_a_counter_keeps_its_name_and_without_its_ending_openmetrics_knows_no_type_of_it() -> None:
    answers = family("Requests2XX", "counter", "Answers", [({"Level": "Host"}, 3)])
    text = '# HELP Requests2XX Answers\n# TYPE Requests2XX {}\nRequests2XX{{Level="Host"}} 3.0\n'

    assert render([answers]).decode() == text.format("counter")
    assert b"".join(texts([answers], openly=True)).decode() == f"{text.format('unknown')}# EOF\n"
