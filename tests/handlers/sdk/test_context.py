"""Every member that TorchServe's context has, and what it gives."""

from typing import Any

import pytest

from tsctl.handlers.sdk.context import Context, RequestProcessor


@pytest.fixture
def loading() -> Context:
    """A context during `initialize`."""
    config = {"handler": {"top": 1}}
    return Context("net", "/models/net", {"model": {"handler": "h"}}, 4, 1, "0.1", config, limit_max_image_pixels=False)


@pytest.fixture
def context(loading: Context) -> Context:
    """A context with a batch of two."""
    loading.begin_batch(["id-a", "id-b"], [{"X-Name": "a", "ts_request_sequence_id": "s"}, {"X-Name": "b"}])
    return loading


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


def test_an_archive_without_a_config_has_an_empty_one() -> None:
    context = Context("net", "/", {}, 1)

    assert context.model_yaml_config == {}
    assert context.system_properties["gpu_id"] is None
    assert context.system_properties["limit_max_image_pixels"] is True


def test_while_loading_there_is_no_request(loading: Context) -> None:
    assert loading.request_processor is None
    assert loading.request_ids == {}
    assert loading.get_request_id() is None
    with pytest.raises(RuntimeError, match="still loading"):
        loading.get_request_header(0, "X-Name")


def test_setting_every_status_while_loading_does_nothing(loading: Context) -> None:
    loading.set_all_response_status(500)

    assert loading.request_processor is None


def test_request_ids_are_by_row(context: Context) -> None:
    assert context.request_ids == {0: "id-a", 1: "id-b"}
    assert context.get_request_id() == "id-a"
    assert context.get_request_id(1) == "id-b"
    assert context.get_request_id(2) is None


@pytest.mark.parametrize(
    ("idx", "key", "expected"),
    [
        pytest.param(0, "X-Name", "a", id="of the row"),
        pytest.param(1, "X-Name", "b", id="of the other row"),
        pytest.param(0, "x-name", None, id="in the case that was sent, only"),
        pytest.param(0, "X-Else", None, id="none"),
    ],
)
def test_a_request_header(context: Context, idx: int, key: str, expected: str | None) -> None:
    assert context.get_request_header(idx, key) == expected


def test_all_request_headers_of_a_row(context: Context) -> None:
    assert context.get_all_request_header(1) == {"X-Name": "b"}


def test_the_content_type_of_an_answer_is_a_header(context: Context) -> None:
    context.set_response_content_type(1, "text/html")

    assert context.get_response_content_type(1) == "text/html"
    assert context.get_response_headers(1) == {"content-type": "text/html"}
    assert context.get_response_content_type(0) is None


def test_a_response_header_has_one_value(context: Context) -> None:
    context.set_response_header(0, "X-Took", "1")
    context.set_response_header(0, "X-Took", "2")

    assert context.get_response_headers(0) == {"X-Took": "2"}
    assert context.get_response_headers(1) == {}


def test_a_status_is_200_without_a_phrase_until_it_is_set(context: Context) -> None:
    assert context.get_response_status(0) == (200, None)


def test_a_status_is_set_for_one_row(context: Context) -> None:
    context.set_response_status(507, "full", idx=1)

    assert context.get_response_status(1) == (507, "full")
    assert context.get_response_status(0) == (200, None)


def test_a_status_is_set_for_every_row(context: Context) -> None:
    context.set_all_response_status(429, "later")

    assert [context.get_response_status(idx) for idx in (0, 1)] == [(429, "later")] * 2


def test_the_sequence_of_a_request_is_named_by_its_header(context: Context) -> None:
    assert context.get_sequence_id(0) == "s"
    assert context.get_sequence_id(1) == ""


def test_the_names_of_the_sequence_headers_are_known(context: Context) -> None:
    assert context.header_key_sequence_id == "ts_request_sequence_id"
    assert context.header_key_sequence_start == "ts_request_sequence_start"
    assert context.header_key_sequence_end == "ts_request_sequence_end"


def test_the_environment_renames_the_sequence_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TS_REQUEST_SEQUENCE_ID", "X-Sequence")
    context = Context("net", "/", {}, 1)

    context.begin_batch(["id"], [{"X-Sequence": "7"}])

    assert context.get_sequence_id(0) == "7"


@pytest.mark.parametrize("member", ["stopping_criteria", "cl_socket"])
def test_the_members_for_streaming_are_there_and_none(context: Context, member: str) -> None:
    assert getattr(context, member) is None


def test_metrics_know_the_batch(context: Context) -> None:
    assert context.metrics.model_name == "net"
    assert context.metrics.request_ids == {0: "id-a", 1: "id-b"}


def test_what_a_handler_puts_on_it_outlives_the_batch(context: Context) -> None:
    handlers_view: Any = context
    handlers_view.cache = {"kept": True}

    context.begin_batch(["id-c"], [{}])

    assert handlers_view.cache == {"kept": True}


def test_the_next_batch_starts_clean(context: Context) -> None:
    context.set_all_response_status(500, "broken")
    context.set_response_header(0, "X-Old", "1")

    context.begin_batch(["id-c"], [{}])

    assert context.request_ids == {0: "id-c"}
    assert context.get_response_status(0) == (200, None)
    assert context.get_response_headers(0) == {}


def test_a_selection_renumbers_the_rows_and_writes_to_the_same_answers(context: Context) -> None:
    with context.selected([1, 0, 1]):
        ids = [context.get_request_id(index) for index in range(3)]
        metrics_ids = dict(context.metrics.request_ids)
        context.set_response_status(418, "teapot", idx=2)

    assert ids == ["id-b", "id-a", "id-b"]
    assert metrics_ids == {0: "id-b", 1: "id-a", 2: "id-b"}
    assert context.request_ids == context.metrics.request_ids == {0: "id-a", 1: "id-b"}
    assert context.get_response_status(0) == (200, None)
    assert context.get_response_status(1) == (418, "teapot")


def test_a_selection_ends_also_when_it_fails(context: Context) -> None:
    with pytest.raises(KeyError), context.selected([1]):
        raise KeyError("within")

    assert context.request_ids == {0: "id-a", 1: "id-b"}


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


def test_a_repr_says_how_many_requests_it_holds(context: Context) -> None:
    assert repr(context) == "<Context net, 2 requests>"


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
