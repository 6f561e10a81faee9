"""What cannot become a message is refused; what the daemon reads of one is tested with its gRPC."""

import json
from typing import Any

import pytest

from tsctl.tensors.bodies import write_grpc_message
from tsctl.tensors.requests import read_inference_request


def no_metadata() -> Any:
    return {"inputs": []}


def message(body: bytes) -> bytes:
    return write_grpc_message(read_inference_request(body, no_metadata), "net", "2.0")


@pytest.mark.parametrize("body", [b"x", b"[]", b"{}", b'{"inputs": [{"name": "x"}]}'])
def test_what_is_no_request_is_refused_with_an_example(body: bytes) -> None:
    with pytest.raises(ValueError, match=r'\{"inputs": \[\{"name": …, "datatype": …'):
        message(body)


@pytest.mark.parametrize(("datatype", "data"), [("UINT8", [300]), ("INT8", [1.5]), ("BF16", [1.0])])
def test_what_does_not_fit_its_datatype_is_refused(datatype: str, data: list[Any]) -> None:
    tensor = {"name": "x", "datatype": datatype, "shape": [1], "data": data}

    with pytest.raises(ValueError, match=f"input `x`: .*{datatype}"):
        message(json.dumps({"inputs": [tensor]}).encode())
