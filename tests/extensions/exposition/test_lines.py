"""The lines are those of `prometheus_client`, to the byte, and none is written that the library would not."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

from tsctl.daemon.extensions.exposition.text import MetricFamily, family, histograms, texts
from tsctl.daemon.metrics.histogram import SECONDS, Histogram, LatencyExample

names = st.sampled_from(["jobs", "a_b", "Requests2XX", "Took"])
labels = st.dictionaries(st.sampled_from(["a", "model", "version", "Zone", "lf", "ld"]), st.text(max_size=5))
numbers = (
    st.integers(-(10**18), 10**18) | st.floats(allow_nan=True) | st.booleans() | st.sampled_from([999_999, 1_000_000])
)
families = st.builds(family, names, st.just("gauge"), st.text(max_size=5), st.lists(st.tuples(labels, numbers)))


class _One:
    """A collector of one family, for the library."""

    def __init__(self, made: MetricFamily) -> None:
        self._made = made

    def collect(self) -> Iterator[Metric]:
        yield self._made


def by_library(made: MetricFamily, *, openly: bool) -> str:
    text: bytes = openmetrics.generate_latest(_One(made)) if openly else generate_latest(_One(made))
    return text.decode()


@pytest.mark.parametrize("openly", [False, True], ids=["text", "OpenMetrics"])
@given(made=families)
def test_gauges_are_written_as_by_the_library(openly: bool, made: MetricFamily) -> None:
    empty = b"# EOF\n" if openly else b""

    text = b"".join(texts([made], openly=openly))

    assert text.decode() == by_library(made, openly=openly) if made.rows else text == empty


@pytest.mark.parametrize("openly", [False, True], ids=["text", "OpenMetrics"])
@given(
    name=names,
    members=st.lists(
        st.tuples(labels, st.lists(st.integers(0, 10**9), min_size=17, max_size=17), st.integers(0, 16), st.floats()),
        min_size=1,
        max_size=3,
    ),
)
def test_histograms_are_written_as_by_the_library(
    openly: bool, name: str, members: list[tuple[dict[str, str], list[int], int, float]]
) -> None:
    values, examples = [], []
    for chosen, counts, index, total in members:
        histogram = Histogram(SECONDS)
        histogram.add(counts, total)
        values.append((chosen, histogram))
        examples.append({index: LatencyExample('4bf9"', total, 1000.5)})

    def made() -> MetricFamily:
        return histograms(name, "Time", values, examples)

    assert b"".join(texts([made()], openly=openly)).decode() == by_library(made(), openly=openly)


def test_a_chosen_bucket_has_its_example_too() -> None:
    histogram = Histogram((1.0,))
    histogram.add((1, 0), 0.5)
    made = histograms("x", "Time", [({}, histogram)], [{0: LatencyExample("4bf9", 0.5, 1000.5)}])

    (text, _) = texts([made], ["x_bucket"], openly=True)

    assert b'x_bucket{le="1.0"} 1.0 # {trace_id="4bf9"} 0.5 1000.5\n' in text


@pytest.mark.parametrize("openly", [False, True], ids=["text", "OpenMetrics"])
def test_a_large_family_is_written_in_slices_that_are_one_family_together(openly: bool) -> None:
    def made() -> Iterator[MetricFamily]:
        yield family("jobs", "gauge", "Jobs", [({"model": f"m{index}"}, index) for index in range(2001)])
        yield histograms("x", "Time", [({"model": f"m{index}"}, Histogram((1.0,))) for index in range(101)])

    for one, again in zip(made(), made(), strict=True):
        pieces = list(texts([one], openly=openly))

        assert len(pieces) == 3 + openly
        assert b"".join(pieces).count(b"#") == 2 + openly
        assert b"".join(pieces).decode() == by_library(again, openly=openly)
