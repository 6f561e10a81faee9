"""Each envelope: what the handler sees of a request, and what becomes of its answer."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.handlers.device import DEVICE
from tests.handlers.samples import context_of
from tsctl.handlers import wire
from tsctl.handlers.envelopes.entry import enveloped
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.sdk.loader import EntryPoint

JSON = "application/json"


class Recorder:
    """Answers each row with its representation, and keeps the rows."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []

    def handle(self, data: list[Any], context: Context) -> list[Any]:
        self.rows.append(data)
        return [repr(each) for each in data]


def run(
    name: str, handle: Any, *documents: Any, headers: dict[int, tuple[str, str]] | None = None
) -> list[wire.Answer]:
    """Run one batch of JSON documents, or bytes, through a function in an envelope."""
    rows = []
    for index, document in enumerate(documents):
        raw = isinstance(document, bytes)
        content = document if raw else json.dumps(document).encode()
        own = [headers[index]] if headers and index in headers else []
        rows.append(wire.Row(f"r{index}", own, [("body", "" if raw else JSON, content)]))
    manifest_model = {"modelName": "net", "modelVersion": "2.0"}
    return Runtime(enveloped(EntryPoint(None, handle), name), context_of(Path("/"), manifest_model)).run(rows)


def bodies(answers: list[wire.Answer]) -> list[Any]:
    assert [answer.status for answer in answers] == [200] * len(answers), answers
    return [json.loads(answer.body) for answer in answers]


def test_body_gives_the_handler_the_values_themselves() -> None:
    recorder = Recorder()

    answers = run("body", recorder.handle, [1, 2], b"raw")

    assert recorder.rows == [[[1, 2], bytearray(b"raw")]]
    assert [answer.body for answer in answers] == [b"[1, 2]", b"bytearray(b'raw')"]


def test_json_flattens_the_instances_of_the_batch_and_puts_the_predictions_back() -> None:
    recorder = Recorder()

    answers = run("json", recorder.handle, {"instances": [1, 2]}, {"instances": []}, {"instances": [[3]]})

    assert recorder.rows == [[1, 2, [3]]]
    assert [answer.body for answer in answers] == [
        b'{"predictions": ["1", "2"]}',
        b'{"predictions": []}',
        b'{"predictions": ["[3]"]}',
    ]
    assert {answer.headers[0] for answer in answers} == {("content-type", JSON)}


def test_json_decodes_base64_in_rows_and_in_their_members() -> None:
    recorder = Recorder()

    run("json", recorder.handle, {"instances": [{"b64": "aGk="}, {"data": {"b64": "aGk="}, "k": 1}]})

    assert recorder.rows == [[b"hi", {"data": b"hi", "k": 1}]]


def test_json_keeps_the_content_type_that_the_handler_set() -> None:
    def handle(data: list[Any], context: Context) -> list[Any]:
        context.set_response_content_type(0, "application/vnd.mine+json")
        return data

    (answer,) = run("json", handle, {"instances": [1]})

    assert answer.headers == [("content-type", "application/vnd.mine+json")]


def test_kserve_answers_predictions_and_explanations_of_one_batch() -> None:
    answers = run(
        "kserve",
        Recorder().handle,
        {"instances": [{"data": 1}, {"data": 2}]},
        b'{"instances": [3]}',
        headers={1: ("explain", "True")},
    )

    assert bodies(answers) == [{"predictions": ["{'data': 1}", "{'data': 2}"]}, {"explanations": ["3"]}]


def test_kserve_v2_answers_each_request_with_its_own_id_and_names() -> None:
    def handle(data: list[Any], context: Context) -> list[Any]:
        return [each["data"] for each in data]

    def tensor(name: str, *values: float) -> dict[str, Any]:
        return {"name": name, "shape": [len(values), 1], "datatype": "FP32", "data": list(values)}

    first, second = bodies(
        run(
            "kservev2",
            handle,
            {"id": "mine", "inputs": [tensor("a", 1.5, 2.0), tensor("b", 3.0)]},
            {"inputs": [tensor("c", 4.0)]},
        )
    )

    assert first == {
        "id": "mine",
        "model_name": "net",
        "model_version": "2.0",
        "outputs": [
            {"name": "a", "datatype": "FP64", "data": [1.5, 2.0], "shape": [2]},
            {"name": "b", "datatype": "FP64", "data": [3.0], "shape": [1]},
        ],
    }
    assert second["id"] == "r1"
    assert [output["name"] for output in second["outputs"]] == ["c"]


@pytest.mark.parametrize(
    ("tensor", "data"),
    [
        pytest.param({"datatype": "INT64", "shape": [2, 2], "data": [1, 2, 3, 4]}, [[1, 2], [3, 4]], id="shaped"),
        pytest.param({"datatype": "INT64", "shape": [1], "data": [[7]]}, [7], id="flattened"),
        pytest.param({"datatype": "BYTES", "shape": [1], "data": ["text"]}, "text", id="one text is itself"),
        pytest.param({"datatype": "BYTES", "shape": [2], "data": ["a", "b"]}, ["a", "b"], id="more texts are a list"),
    ],
)
def test_kserve_v2_gives_data_its_shape(tensor: dict[str, Any], data: Any) -> None:
    recorder = Recorder()

    run("kservev2", recorder.handle, {"inputs": [{"name": "x", **tensor}]})

    assert recorder.rows == [[{"name": "x", **tensor, "data": data}]]


@pytest.mark.parametrize(
    ("item", "output"),
    [
        pytest.param(3, {"datatype": "INT64", "data": [3], "shape": [1]}, id="a number"),
        pytest.param([[1, 2], [3, 4]], {"datatype": "INT64", "data": [1, 2, 3, 4], "shape": [4]}, id="nested lists"),
        pytest.param([True], {"datatype": "BOOL", "data": [True], "shape": [1]}, id="booleans"),
        pytest.param(
            torch.ones(1, 2, requires_grad=True, device=DEVICE),
            {"datatype": "FP32", "data": [1, 1], "shape": [2]},
            id="a tensor",
        ),
        pytest.param("yes", {"datatype": "BYTES", "data": ["yes"], "shape": [1]}, id="a text"),
        pytest.param({"cat": 0.9}, {"datatype": "BYTES", "data": [{"cat": 0.9}], "shape": [1]}, id="an object, whole"),
        pytest.param([[1], [2, 3]], {"datatype": "BYTES", "data": [[[1], [2, 3]]], "shape": [1]}, id="uneven lists"),
    ],
)
def test_kserve_v2_names_the_type_of_an_output(item: Any, output: dict[str, Any]) -> None:
    request = {"inputs": [{"name": "x", "shape": [1], "datatype": "INT64", "data": [0]}]}

    (body,) = bodies(run("kservev2", lambda data, context: [item], request))

    assert body["outputs"] == [{"name": "x", **output}]


def test_a_request_that_is_alone_may_have_more_items_than_rows() -> None:
    request = {"inputs": [{"name": "x", "shape": [1], "datatype": "INT64", "data": [0]}]}

    (body,) = bodies(run("kservev2", lambda data, context: [1, 2], request))

    assert [output["name"] for output in body["outputs"]] == ["x", "output-1"]


@pytest.mark.parametrize(
    ("name", "document", "sentence"),
    [
        pytest.param("json", b"{", "The request is not JSON: ", id="no JSON"),
        pytest.param("json", [1], "The request should be a JSON object, not a list", id="no object"),
        pytest.param("json", {}, "The request has no list `instances`", id="no instances"),
        pytest.param("json", {"instances": 1}, "The request has no list `instances`", id="instances that are no list"),
        pytest.param("json", {"instances": [{"b64": "?"}]}, "A `b64` of the request is not base64", id="no base64"),
        pytest.param("json", {"instances": [{"b64": 1}]}, "A `b64` of the request is not base64", id="base64 no text"),
        pytest.param("kserve", {"inputs": []}, "The request has no list `instances`", id="v2 for v1"),
        pytest.param("kservev2", {"instances": []}, "The request has no list `inputs`", id="v1 for v2"),
        pytest.param("kservev2", {"inputs": [1]}, "An input of the request lacks one of", id="an input that is none"),
        pytest.param("kservev2", {"inputs": [{"name": "x"}]}, "An input of the request lacks one of", id="half of one"),
        pytest.param(
            "kservev2",
            {"inputs": [{"name": "x", "shape": [3], "datatype": "FP32", "data": [1, 2]}]},
            "The data of the input `x` does not have the shape [3]: ",
            id="another shape",
        ),
        pytest.param(
            "kservev2",
            {"inputs": [{"name": "x", "shape": [1], "datatype": "BYTES", "data": 5}]},
            "The data of the input `x` does not have the shape [1]: ",
            id="bytes that are no list",
        ),
    ],
)
def test_a_request_that_is_not_in_the_envelope_is_told_and_fails_alone(name: str, document: Any, sentence: str) -> None:
    good = {"instances": [1], "inputs": [{"name": "x", "shape": [1], "datatype": "INT64", "data": [1]}]}

    answers = run(name, Recorder().handle, good, document, good)

    assert [answer.status for answer in answers] == [200, 400, 200]
    assert answers[1].body.decode().startswith(sentence)
    assert answers[1].body.endswith(b"(Request r1)")


@pytest.mark.parametrize("name", ["json", "kserve", "kservev2"])
@pytest.mark.parametrize(("result", "what"), [(None, "NoneType"), (["a"], "expected 2, the handler returned 1")])
def test_a_handler_that_returns_something_else_fails_the_batch_with_the_reason(
    name: str, result: Any, what: str
) -> None:
    good = {"instances": [1], "inputs": [{"name": "x", "shape": [1], "datatype": "INT64", "data": [1]}]}

    answers = run(name, lambda data, context: result, good, good)

    assert [answer.status for answer in answers] == [503, 503]
    assert what in answers[0].body.decode()


@pytest.mark.parametrize("name", ["json", "kserve", "kservev2"])
def test_an_item_that_cannot_be_sealed_fails_its_request_only(name: str) -> None:
    good = {"instances": [1], "inputs": [{"name": "x", "shape": [1], "datatype": "INT64", "data": [1]}]}

    answers = run(name, lambda data, context: [object(), 2], good, good)

    assert [answer.status for answer in answers] == [503, 200]
    assert answers[0].body.startswith(b"Unsupported model output data type.")


def test_a_tensor_of_a_type_that_numpy_lacks_fails_its_request_only() -> None:
    good = {"inputs": [{"name": "x", "shape": [1], "datatype": "INT64", "data": [1]}]}
    items = [torch.ones(1, dtype=torch.bfloat16, device=DEVICE), torch.tensor([2], device=DEVICE)]

    answers = run("kservev2", lambda data, context: items, good, good)

    assert [answer.status for answer in answers] == [503, 200]
    assert answers[0].body.startswith(b"Unsupported model output data type. The output `x` is not an array: ")


def test_a_function_is_initialized_through_the_envelope() -> None:
    calls: list[Any] = []
    entry = enveloped(EntryPoint(None, lambda data, context: calls.append(data)), "json")

    entry.initialize(context_of(Path("/")))

    assert calls == [None]


@pytest.mark.parametrize("name", ["", "default"])
def test_without_an_envelope_the_entry_point_stays_as_it_is(name: str) -> None:
    entry = EntryPoint(None, Recorder().handle)

    assert enveloped(entry, name) is entry


def test_an_envelope_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(HandlerError, match="`soap` is not a service envelope; use body, json, kserve, kservev2"):
        enveloped(EntryPoint(None, Recorder().handle), "soap")
