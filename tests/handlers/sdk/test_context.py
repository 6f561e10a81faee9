"""Every member that TorchServe's context has, and what it gives."""

import copy
from typing import Any

import pytest

from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.request_processor import RequestProcessor
from tsctl.handlers.torchserve.metrics_store import MetricsStore


@pytest.fixture
def loading() -> Context:
    """A context during `initialize`."""
    config = {"handler": {"top": 1}}
    return Context("net", "/models/net", {"model": {"handler": "h"}}, 4, 1, "0.1", False, None, config)


def test_it_says_what_is_served(loading: Context) -> None:
    assert loading.model_name == "net"
    assert loading.manifest == {"model": {"handler": "h"}}
    assert loading.model_yaml_config == {"handler": {"top": 1}}
    assert loading.system_properties == {
        "model_dir": "/models/net",
        "gpu_id": 1,
        "batch_size": 4,
        "server_name": "MMS",
        "server_version": "0.1",
        "limit_max_image_pixels": False,
    }
    bare = Context("net", "/", {}, 1)
    assert bare.model_yaml_config == {}
    assert (bare.system_properties["gpu_id"], bare.system_properties["limit_max_image_pixels"]) == (None, True)
    assert bare.system_properties["server_version"] == "0.12.0", "as `ts.__version__`"


def test_a_test_of_a_handler_may_make_one_as_for_torchserve() -> None:
    arguments: dict[str, Any] = {"model_dir": "/", "manifest": None, "batch_size": None, "gpu": None}
    metrics: Any = MetricsStore("1", "net")
    context = Context(model_name="net", **arguments, mms_version="1", metrics=metrics)
    context._request_processor = [RequestProcessor(request_header={"Accept": "text/plain"})]

    assert context.get_request_header(0, "Accept") == "text/plain"
    assert context.request_processor is context._request_processor
    assert context._system_properties is context.system_properties
    assert context.metrics is metrics


def test_a_request_processor_has_torchserves_members() -> None:
    processor = RequestProcessor({"Accept": "text/plain"})

    processor.report_status(404, "gone")
    processor.add_response_property("X-Key", "value")

    assert processor.get_request_property("Accept") == "text/plain"
    assert processor.get_request_property("accept") is None
    assert processor.get_request_properties() == {"Accept": "text/plain"}
    assert processor.get_response_status_code() == 404
    assert processor.get_response_status_phrase() == "gone"
    assert processor.get_response_header("X-Key") == "value"
    assert processor.get_response_headers() == {"X-Key": "value"}


def test_a_handlers_code_may_inherit_from_a_request_processor_and_copy_one() -> None:
    class Loud(RequestProcessor):
        def get_request_property(self, key: Any) -> Any:
            return str(super().get_request_property(key)).upper()

    first = Loud({"Accept": "text/plain"})
    first.report_status(404, "gone")
    second = copy.deepcopy(first)
    second.report_status(200)

    context = Context("net", "/", {}, 1)
    context._request_processor = [first, copy.copy(second)]
    assert context.get_request_header(1, "Accept") == "TEXT/PLAIN"
    assert (context.get_response_status(0), context.get_response_status(1)) == ((404, "gone"), (200, None))


def test_one_beside_it_has_requests_of_its_own_and_what_the_handler_has_set(loading: Context) -> None:
    context = loading
    context.begin_batch(["a"], [{"key": "first"}])
    vars(context)["cache"] = "mine"

    other = context.beside()
    other.begin_batch(["b", "c"], [{"key": "second"}, {}])

    assert (context.get_request_id(0), context.get_request_header(0, "key")) == ("a", "first")
    assert (other.get_request_id(0), other.get_request_header(0, "key")) == ("b", "second")
    assert vars(other)["cache"] == "mine"
    assert (context.metrics.request_ids, other.metrics.request_ids) == ({0: "a"}, {0: "b", 1: "c"})
    assert other.metrics.tally is context.metrics.tally


def test_without_a_batch_it_is_as_while_the_model_is_loading(loading: Context) -> None:
    loading.begin_batch(["a"], [{}])
    loading.end_batch()

    assert (loading.request_ids, loading.request_processor) == ({}, None)
    with pytest.raises(RuntimeError, match="still loading"):
        loading.get_request_header(0, "key")
