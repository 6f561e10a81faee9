"""Two texts of /metrics are the same document where they tell the same."""

import json

import pytest

from tests.lab.conformance.exposition import shape

OLD = """\
# HELP QueueTime Torchserve prometheus gauge metric with unit: Milliseconds
# TYPE QueueTime gauge
QueueTime{Level="Host",Hostname="h",} 3.0
# TYPE ts_inference_requests_total counter
ts_inference_requests_total{model_name="m",model_version="1.0",} 2.0
"""
NEW = """\
# TYPE ts_inference_requests_total counter
ts_inference_requests_total{model_version="1.0",model_name="m"} 2.0
# TYPE QueueTime gauge
QueueTime{Hostname="h",Level="Host"} 4.5
"""


def test_order_commas_and_times_make_no_difference() -> None:
    assert shape(OLD) == shape(NEW)


def test_what_is_counted_does() -> None:
    assert shape(OLD) != shape(OLD.replace("2.0", "3.0"))


def test_a_histogram_is_one_family_with_one_sample() -> None:
    text = (
        '# TYPE t histogram\nt_bucket{le="1",a="b"} 1\nt_bucket{le="+Inf",a="b"} 1\nt_sum{a="b"} 2\nt_count{a="b"} 1\n'
    )

    assert json.loads(shape(text)) == {"t": {"type": "histogram", "samples": {"a=b": None}}}


def test_a_family_without_a_type_and_a_sample_without_labels_are_there() -> None:
    assert json.loads(shape("x 1\n")) == {"x": {"type": "untyped", "samples": {"": None}}}


def test_what_is_no_sample_is_told() -> None:
    with pytest.raises(ValueError, match="no sample: what is this"):
        shape("what is this\n")
