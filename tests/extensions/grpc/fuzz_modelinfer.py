"""Inference requests over gRPC (extensions/grpc/tensor_contents.py): read as claimed, or a named error."""

from google.protobuf.message import DecodeError

from tests.lab.fuzz.targets import Target
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import finish
from tsctl.daemon.extensions.grpc.protos.limits import check_steps
from tsctl.daemon.extensions.grpc.protos.messages import message_class, request_class
from tsctl.daemon.extensions.grpc.tensor_contents import read_steps, write_steps
from tsctl.daemon.extensions.tensors.forms import InferAnswer
from tsctl.daemon.extensions.tensors.sizes import check_steps as check_bytes

_REQUEST = message_class("inference.ModelInferRequest")
_RECEIVED = request_class("inference.ModelInferRequest")
_RESPONSE = message_class("inference.ModelInferResponse")


def check(data: bytes) -> object:
    try:
        finish(check_steps(_RECEIVED.DESCRIPTOR, data))
        message = _RECEIVED.FromString(data)
    except (DecodeError, UnicodeDecodeError):
        return None
    except BadRequest as error:
        return str(error)
    try:
        request = finish(read_steps(message))
    except BadRequest as error:
        assert len(str(error)) < 4000 + len(data)
        return str(error)
    for tensor in request.inputs:
        finish(check_bytes(tensor.name, tensor.datatype, tensor.shape, tensor.data))
    answer = InferAnswer("m", "1", request.id, request.parameters, request.inputs)
    sent = []
    for raw in (False, True):
        response = _RESPONSE()
        finish(write_steps(answer, response, raw=raw))
        back = _REQUEST(inputs=[], raw_input_contents=response.raw_output_contents)
        for output in response.outputs:
            back.inputs.add().ParseFromString(output.SerializeToString())  # inputs and outputs have the same fields
        # As typed contents, a signalling NaN becomes a quiet one: Python's floats hold no other.
        exact = raw or not any(each.datatype in ("FP32", "FP64") for each in request.inputs)
        if exact and not any(each.parameters for each in request.inputs):
            assert finish(read_steps(_RECEIVED.FromString(back.SerializeToString()))).inputs == request.inputs
        sent.append(response.SerializeToString(deterministic=True))
    return sent


def _example(datatype: str, shape: list[int], raw: bytes | None = None, **contents: object) -> bytes:
    tensor = {"name": "a", "datatype": datatype, "shape": shape} | ({"contents": contents} if contents else {})
    message = _REQUEST(model_name="m", id="7", inputs=[tensor], parameters={"k": {"int64_param": 1}})
    if raw is not None:
        message.raw_input_contents.append(raw)
    return bytes(message.SerializeToString())


TARGET = Target(
    check,
    [
        _example("INT32", [2], int_contents=[1, -1]),
        _example("UINT8", [1], uint_contents=[300]),
        _example("BOOL", [1, 1], bool_contents=[True]),
        _example("FP32", [1], fp32_contents=[1.5]),
        _example("FP64", [1], fp64_contents=[float("nan")]),
        _example("BYTES", [2], bytes_contents=[b"x", b""]),
        _example("FP16", [1], b"\x00\x3c"),
        _example("BF16", [1], b"\x80\x3f"),
        _example("INT64", [0, 3], b""),
        _example("BYTES", [1], b"\x01\0\0\0x"),
        _example("INT32", [2], b"1234"),
        _REQUEST(parameters={"k": {"double_param": float("inf")}}).SerializeToString(),
    ],
    [b"INT8", b"UINT64", b"FP64", b"BYTES", b"\xff" * 9 + b"\x01"],
)
