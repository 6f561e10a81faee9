"""Inference requests that `tsctl bench` makes of a file, as the daemon reads them."""

import json
import re
from typing import Any

import pytest

from tests.handlers.tensors.test_arrays import VALUES, pack
from tests.kit.said import reason, said_in
from tsctl.daemon.model_settings.declarations import DATATYPES
from tsctl.tensors.bodies import LENGTH_HEADER, write_binary_body
from tsctl.tensors.requests import RequestInTensors, packed, read_inference_request

PACKED = [datatype for datatype in DATATYPES if datatype not in ("BYTES", "BF16")]
WHOLE: dict[str, Any] = {
    "id": "seven",
    "parameters": {"priority": -3, "sure": True, "share": 0.5, "text": "é"},
    "inputs": [
        {"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [[1, 2], [3, 4.5]], "parameters": {"kind": "b"}},
        {"name": "t", "datatype": "BYTES", "shape": [2], "data": ["a", "éé"]},
    ],
    "outputs": [{"name": "y", "parameters": {"of": 300}}, {"name": "z"}],
}


def unasked() -> Any:
    raise AssertionError("the metadata is not needed")


def read(document: Any) -> RequestInTensors:
    return read_inference_request(json.dumps(document).encode(), unasked)


def of_bytes(content: bytes, *inputs: dict[str, Any]) -> RequestInTensors:
    return read_inference_request(content, lambda: {"inputs": list(inputs)})


def declared(datatype: str, *shape: int) -> dict[str, Any]:
    return {"name": "x", "datatype": datatype, "shape": list(shape)}


@pytest.mark.parametrize("datatype", PACKED)
def test_elements_are_packed_as_the_protocol_has_them(datatype: str) -> None:
    assert packed(datatype, VALUES[datatype]) == pack(datatype, VALUES[datatype])


def test_a_binary_body_has_the_elements_after_the_head() -> None:
    body, headers = write_binary_body(read(WHOLE))

    length = int(dict(headers)[LENGTH_HEADER])
    head = json.loads(body[:length])
    assert body[length:] == pack("FP32", [1, 2, 3, 4.5]) + pack("BYTES", [b"a", "éé".encode()])
    assert [each["parameters"]["binary_data_size"] for each in head["inputs"]] == [16, 13]
    assert head["parameters"] == {"binary_data_output": True, **WHOLE["parameters"]}
    assert (head["id"], [each["name"] for each in head["outputs"]]) == ("seven", ["y", "z"])


@pytest.mark.parametrize(
    ("content", "tensor", "shape", "data"),
    [
        pytest.param(bytes(24), declared("FP32", -1), (6,), bytes(24), id="any number of elements"),
        pytest.param(bytes(24), declared("FP32", -1, 3), (2, 3), bytes(24), id="rows"),
        pytest.param(bytes(24), declared("FP32", 2, 3), (2, 3), bytes(24), id="all sizes are declared"),
        pytest.param(b"abc", declared("BYTES", 1), (1,), b"\3\0\0\0abc", id="one string"),
        pytest.param(b'{"a": 1}', declared("BYTES", -1), (1,), b'\10\0\0\0{"a": 1}', id="JSON without inputs"),
    ],
)
def test_bytes_are_the_elements_of_the_declared_input(
    content: bytes, tensor: dict[str, Any], shape: tuple[int, ...], data: bytes
) -> None:
    (found,) = of_bytes(content, tensor).inputs

    assert (found.name, found.datatype, found.shape, found.data) == ("x", tensor["datatype"], shape, data)


@pytest.mark.parametrize(
    ("content", "inputs", "said"),
    [
        pytest.param(bytes(24), [], "the model declares 0 inputs", id="nothing is declared"),
        pytest.param(bytes(24), [declared("FP32", 6)] * 2, "the model declares 2 inputs", id="several inputs"),
        pytest.param(bytes(23), [declared("FP32", -1)], "23 bytes are no whole number", id="part of an element"),
        pytest.param(bytes(24), [declared("FP32", -1, -1)], "do not tell the shape", id="two open sizes"),
        pytest.param(bytes(24), [declared("FP32", -1, 5)], "do not tell the shape", id="part of a row"),
        pytest.param(bytes(24), [declared("FP32", 7)], "do not tell the shape", id="too few elements"),
    ],
)
def test_bytes_that_are_no_request_are_refused(content: bytes, inputs: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        of_bytes(content, *inputs)


@said_in("refused.txt")
def test_json_that_is_no_request_is_refused(given: str) -> str:
    said = reason(lambda: read(json.loads(given)), ValueError)
    return said.partition(": byte format")[0]  # which Python words
