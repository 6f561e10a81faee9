"""A JSON request as `tsctl bench` makes a message of it: read by protobuf itself, and as the daemon reads it."""

from tests.tsctl.tensors.test_requests import WHOLE, read
from tsctl.daemon.core.steps import finish
from tsctl.daemon.extensions.grpc.protos.messages import message_class, request_class
from tsctl.daemon.extensions.grpc.tensor_contents import read_steps
from tsctl.daemon.extensions.tensors.elements import pack
from tsctl.tensors.bodies import write_grpc_message


def test_texts_have_their_lengths_and_large_shapes_their_digits() -> None:
    texts = {"name": "t", "datatype": "BYTES", "shape": [2], "data": ["a", "é"]}
    numbers = {"name": "n", "datatype": "INT64", "shape": [1, 300], "data": [-1] * 300}
    written = write_grpc_message(read({"inputs": [texts, numbers]}), "net", "2.0")

    found = message_class("inference.ModelInferRequest").FromString(written)

    assert (found.model_name, found.model_version) == ("net", "2.0")
    assert found.raw_input_contents[0] == b"\x01\0\0\0a\x02\0\0\0\xc3\xa9"
    assert list(found.inputs[1].shape) == [1, 300]
    assert found.raw_input_contents[1] == b"\xff" * 2400


def test_the_daemon_reads_the_whole_message() -> None:
    found = finish(
        read_steps(request_class("inference.ModelInferRequest").FromString(write_grpc_message(read(WHOLE), "m")))
    )

    assert (found.id, found.parameters) == ("seven", WHOLE["parameters"])
    assert [(each.name, each.datatype, each.shape) for each in found.inputs] == [
        ("x", "FP32", (2, 2)),
        ("t", "BYTES", (2,)),
    ]
    assert bytes(found.inputs[0].data) == pack("FP32", [1, 2, 3, 4.5])
    assert bytes(found.inputs[1].data) == pack("BYTES", ["a", "éé"])
    assert found.inputs[0].parameters == {"kind": "b"}
    assert [(each.name, each.parameters) for each in found.outputs] == [("y", {"of": 300}), ("z", {})]
