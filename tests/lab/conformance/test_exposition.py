"""Two texts of /metrics are the same document where they tell the same."""

import json

import pytest

from tests.lab.conformance.exposition import shape

TEXT = """\
# HELP QueueTime Torchserve prometheus gauge metric with unit: Milliseconds
# TYPE QueueTime gauge
QueueTime{Level="Host",Hostname="h",} 3.0
# TYPE ts_inference_requests_total counter
ts_inference_requests_total{model_name="m",model_version="1.0",} 2.0
"""
FAMILIES = TEXT.splitlines(keepends=True)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("".join(FAMILIES[3:] + FAMILIES[:3]), id="the order of families"),
        pytest.param(
            TEXT.replace('Level="Host",Hostname="h",', 'Hostname="h",Level="Host",'), id="the order of labels"
        ),
        pytest.param(TEXT.replace(",}", "}"), id="a comma behind the last label"),
        pytest.param(TEXT.replace("3.0", "4.5"), id="what was measured"),
        pytest.param("".join(FAMILIES[1:]), id="help"),
    ],
)
def test_what_says_nothing_else_makes_no_difference(other: str) -> None:
    assert other != TEXT
    assert shape(other) == shape(TEXT)


def test_what_is_counted_makes_a_difference() -> None:
    assert shape(TEXT) != shape(TEXT.replace("2.0", "3.0"))


def test_a_histogram_is_one_family_with_one_sample() -> None:
    text = (
        '# TYPE t histogram\nt_bucket{le="1",a="b"} 1\nt_bucket{le="+Inf",a="b"} 1\nt_sum{a="b"} 2\nt_count{a="b"} 1\n'
    )

    assert json.loads(shape(text)) == {"t": {"type": "histogram", "samples": {"a=b": None}}}


def test_a_family_without_a_type_is_there() -> None:
    assert json.loads(shape('x{a="b"} 1\n')) == {"x": {"type": "untyped", "samples": {"a=b": None}}}


def test_a_sample_without_labels_is_there() -> None:
    assert json.loads(shape("# TYPE x gauge\nx 1\n")) == {"x": {"type": "gauge", "samples": {"": None}}}


def test_what_is_no_sample_is_told() -> None:
    with pytest.raises(ValueError, match="no sample: what is this"):
        shape("what is this\n")
