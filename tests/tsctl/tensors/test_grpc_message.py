"""A JSON request as a gRPC message, read by protobuf itself."""

import json
import struct
from typing import Any

import pytest

from tsctl.tensors.grpc_message import write_grpc_message
from tsctl.tensors.requests import RequestInTensors, read_inference_request

pytest.importorskip("google.protobuf")


def no_metadata() -> Any:
    return {"inputs": []}


def request(body: bytes) -> RequestInTensors:
    return read_inference_request(body, no_metadata)


def message(*inputs: dict[str, Any], **more: Any) -> Any:
    from tsctl.daemon.api.grpc.protos.messages import message_class

    found = write_grpc_message(request(json.dumps({"inputs": inputs, **more}).encode()), "net", "2.0")
    return message_class("inference.ModelInferRequest").FromString(found)


def test_the_request_is_that_of_the_file() -> None:
    read = message({"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [[1, 2], [3, 4.5]]}, id="7")

    assert (read.model_name, read.model_version, read.id) == ("net", "2.0", "7")
    [tensor] = read.inputs
    assert (tensor.name, tensor.datatype, list(tensor.shape)) == ("x", "FP32", [2, 2])
    assert list(read.raw_input_contents) == [struct.pack("<4f", 1, 2, 3, 4.5)]


def test_texts_have_their_lengths_and_large_shapes_their_digits() -> None:
    read = message(
        {"name": "t", "datatype": "BYTES", "shape": [2], "data": ["a", "é"]},
        {"name": "n", "datatype": "INT64", "shape": [1, 300], "data": [-1] * 300},
    )

    assert read.raw_input_contents[0] == b"\x01\0\0\0a\x02\0\0\0\xc3\xa9"
    assert list(read.inputs[1].shape) == [1, 300]
    assert read.raw_input_contents[1] == b"\xff" * 2400


@pytest.mark.parametrize("body", [b"x", b"[]", b"{}", b'{"inputs": [{"name": "x"}]}'])
def test_what_is_no_request_is_refused_with_an_example(body: bytes) -> None:
    with pytest.raises(ValueError, match=r'\{"inputs": \[\{"name": …, "datatype": …'):
        request(body)


@pytest.mark.parametrize(("datatype", "data"), [("UINT8", [300]), ("INT8", [1.5]), ("BF16", [1.0])])
def test_what_does_not_fit_its_datatype_is_refused(datatype: str, data: list[Any]) -> None:
    with pytest.raises(ValueError, match=f"input `x`: .*{datatype}"):
        message({"name": "x", "datatype": datatype, "shape": [1], "data": data})
