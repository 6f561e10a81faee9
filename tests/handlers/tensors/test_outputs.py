"""A handler's answer to an inference request: arrays, tensors or lists; as JSON, or as bytes after it."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
import torch

from tests.handlers.device import DEVICE
from tests.handlers.samples import context_of
from tests.handlers.tensors.test_arrays import VALUES, pack
from tsctl.daemon.model_settings.declarations import DATATYPES
from tsctl.handlers import wire
from tsctl.handlers.sdk.errors import InvalidResult, NotSerialisable
from tsctl.handlers.sdk.request_processor import RequestProcessor
from tsctl.handlers.tensor_heads import InferHead, WantedTensor
from tsctl.handlers.tensors.datatypes import DTYPES
from tsctl.handlers.tensors.outputs import encode_outputs

FP32 = {"name": "o", "datatype": "FP32", "shape": [-1]}
BYTES = {"name": "o", "datatype": "BYTES", "shape": [-1]}


def encoded(
    item: Any, *declared: Any, names: tuple[str, ...] = (), binary: bool = False, code: int = 200
) -> wire.Answer:
    head = InferHead("7", {}, [], [WantedTensor(each, binary) for each in names], binary)
    processor = RequestProcessor({})
    if code != 200:
        processor.report_status(code)
    return encode_outputs(item, head, declared, context_of(Path(), {"modelVersion": "2.0"}), processor)


class Sent(NamedTuple):
    """An output, as a client finds it; its elements as bytes."""

    name: str
    datatype: str
    shape: list[int]
    data: bytes


def read(answer: wire.Answer) -> list[Sent]:
    at = int(dict(answer.headers).get("Inference-Header-Content-Length", len(answer.body)))  # where bytes begin
    found = []
    for each in msgspec.json.decode(answer.body[:at])["outputs"]:
        if "data" in each:
            values = [value.encode() if isinstance(value, str) else value for value in each["data"]]
            data = pack(each["datatype"], values)
        else:
            size = each["parameters"]["binary_data_size"]
            data, at = bytes(answer.body[at : at + size]), at + size
        found.append(Sent(each["name"], each["datatype"], each["shape"], data))
    assert at == len(answer.body)
    return found


def output(answer: wire.Answer) -> Sent:
    (found,) = read(answer)
    return found


@pytest.mark.parametrize("binary", [False, True], ids=["JSON", "bytes"])
@pytest.mark.parametrize("datatype", DATATYPES)
def test_every_datatype_is_sent_bit_for_bit(datatype: str, binary: bool) -> None:
    values = [b"a", "é".encode()] if datatype == "BYTES" else VALUES[datatype]
    declared = {"name": "o", "datatype": datatype, "shape": [2]}

    sent = output(encoded(np.array(values, DTYPES[datatype]), declared, binary=binary))

    assert sent == ("o", datatype, [2], pack(datatype, values))


def test_the_answer_names_model_version_and_id() -> None:
    answer = encoded({"o": np.array([1.5], np.float32)}, FP32)

    assert msgspec.json.decode(answer.body) == {
        "model_name": "net",
        "model_version": "2.0",
        "id": "7",
        "outputs": [{"name": "o", "datatype": "FP32", "shape": [1], "data": [1.5]}],
    }
    assert answer.headers == [("Content-Type", "application/json")]


def test_bytes_follow_the_json() -> None:
    answer = encoded({"a": np.array([1], np.uint8), "b": np.array([2, 3], np.uint8)}, binary=True)

    assert answer.body.endswith(b"\x01\x02\x03")
    assert ("Content-Type", "application/octet-stream") in answer.headers
    assert [each.data for each in read(answer)] == [b"\x01", b"\x02\x03"]
    asked = encoded({"a": np.array([1], np.uint8), "b": np.array([2], np.uint8)}, names=("b",))
    assert [each.name for each in read(asked)] == ["b"]
    told = encoded("too long", FP32, code=422)
    assert (told.status, told.body) == (422, b"too long"), "an error in the handler's own words"
    assert read(encoded({}, FP32 | {"optional": True})) == []


@pytest.mark.parametrize(
    ("item", "datatype", "values"),
    [
        (torch.tensor([1.5], device=DEVICE), "FP32", [1.5]),
        (torch.tensor([1.5], dtype=torch.bfloat16, device=DEVICE), "BF16", [1.5]),
        (torch.tensor([1], requires_grad=False, device=DEVICE), "INT64", [1]),
        (torch.tensor([1.0], requires_grad=True, device=DEVICE), "FP32", [1.0]),
        ([1, 2], "INT64", [1, 2]),
        ([1.5], "FP64", [1.5]),
        ([True], "BOOL", [True]),
        (["a", "b"], "BYTES", [b"a", b"b"]),
        ([b"\x00"], "BYTES", [b"\x00"]),
        (np.array([2.0], np.float16), "FP16", [2.0]),
        (np.array([1, 2], ">i4"), "INT32", [1, 2]),
    ],
    ids=repr,
)
def test_a_bare_answer_is_one_output_of_its_own_datatype(item: Any, datatype: str, values: list[Any]) -> None:
    sent = output(encoded(item))

    assert (sent.name, sent.datatype, sent.data) == ("output", datatype, pack(datatype, values))


@pytest.mark.parametrize(("item", "values"), [([1, 2.5], [1.0, 2.5]), ((3,), [3.0]), ([], [])])
def test_a_list_becomes_the_declared_datatype(item: Any, values: list[float]) -> None:
    assert output(encoded(item, FP32)).data == pack("FP32", values)


INT8 = {"name": "o", "datatype": "INT8", "shape": [2]}


@pytest.mark.parametrize(
    ("item", "declared", "names", "reason"),
    [
        ({"p": [1]}, (FP32,), (), "the handler returned p, but model-config.yaml declares o"),
        ({}, (FP32,), (), "the handler returned no o, but nothing"),
        ({"a": [1]}, (), ("b",), "the handler returned no b, but a"),
        ({"o": [1.0]}, (FP32, FP32 | {"name": "p"}), ("p",), "the handler returned no p, but o"),
        ({}, (FP32 | {"optional": True}, FP32 | {"name": "p"}), (), "the handler returned no p, but nothing"),
        (np.ones(1, np.int8), (FP32 | {"optional": True},), (), "the output o is INT8 of shape"),
        ([1], (FP32, BYTES | {"name": "p"}), (), "the handler returned list; expected a dict with o, p"),
        (np.array([1.0]), (FP32,), (), r"output o is FP64 of shape \[1\]; model-config.yaml declares FP32"),
        (np.ones((1, 1), np.float32), (FP32,), (), r"the output o is FP32 of shape \[1, 1\]"),
        (np.ones(1, np.int8), (INT8,), (), r"o is INT8 of shape \[1\]; model-config.yaml declares INT8 of shape \[2"),
    ],
)  # fmt: skip
def test_what_is_not_as_declared_is_named(item: Any, declared: Any, names: tuple[str, ...], reason: str) -> None:
    with pytest.raises(InvalidResult, match=reason):
        encoded(item, *declared, names=names)


@pytest.mark.parametrize(
    ("item", "declared", "reason"),
    [
        ([300, 1], (INT8,), "The output o is no array of INT8"),
        ([1.5, 1], (INT8,), "The output o is no array of INT8: .* no whole number"),
        ([[1], [2, 3]], (), "The output output is no array"),
        (["x"], (FP32,), "The output o is no array of FP32"),
        (np.ones(1, np.complex64), (), "the element type complex64, which the protocol lacks"),
        (np.array([math.nan], np.float32), (FP32,), "o has elements that are NaN or infinite, .* ask for binary data"),
        ([b"\xff"], (BYTES,), "o has bytes that are no UTF-8, .* ask for binary data"),
    ],
)
def test_what_cannot_be_sent_is_named(item: Any, declared: Any, reason: str) -> None:
    with pytest.raises(NotSerialisable, match=reason):
        encoded(item, *declared)


@pytest.mark.parametrize("binary", [False, True], ids=["JSON", "bytes"])
@pytest.mark.parametrize(
    ("item", "names", "expected"),
    [
        pytest.param({"o": [1.0]}, (), ["o"], id="what is there is sent"),
        pytest.param({"q": [1.0]}, (), ["q"], id="the optional one alone"),
        pytest.param({"o": [1.0]}, ("o", "q"), ["o"], id="an optional one may be missing though it is asked for"),
        pytest.param({"o": [1.0], "q": [2.0]}, ("q",), ["q"], id="what is asked for is sent"),
    ],
)
def test_an_output_may_be_left_out(item: Any, names: tuple[str, ...], expected: list[str], binary: bool) -> None:
    declared = (FP32, FP32 | {"name": "p"}, FP32 | {"name": "q", "optional": True})

    assert [each.name for each in read(encoded(item, *declared, names=names, binary=binary))] == expected
