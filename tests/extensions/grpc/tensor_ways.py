"""The ways in which one tensor comes over gRPC: as raw contents, and as typed ones."""

from collections.abc import Sequence
from typing import Any

from tsctl.daemon.core.steps import finish
from tsctl.daemon.extensions.grpc.protos.messages import message_class, request_class
from tsctl.daemon.extensions.grpc.tensor_contents import read_steps
from tsctl.daemon.extensions.tensors.forms import InferRequest

_CONTENTS = {
    "BOOL": "bool_contents", "BYTES": "bytes_contents", "FP32": "fp32_contents", "FP64": "fp64_contents",
    "INT64": "int64_contents", "UINT64": "uint64_contents", "FP16": "", "BF16": "",
}  # fmt: skip


def ways_of(tensor: dict[str, Any], data: bytes, values: Sequence[Any]) -> dict[str, InferRequest]:
    """Return the request of one tensor, as it is read.

    Args:
        tensor: its name, datatype and shape.
        data: its elements as bytes.
        values: the same as Python values.
    """
    ways = {"gRPC, raw": _received(inputs=[tensor], raw_input_contents=[data])}
    datatype = tensor["datatype"]
    field = _CONTENTS.get(datatype, "uint_contents" if datatype.startswith("U") else "int_contents")
    if field:
        contents = [each.encode() if isinstance(each, str) else each for each in values]
        ways["gRPC, typed"] = _received(inputs=[tensor | {"contents": {field: contents}}])
    return ways


def _received(**fields: Any) -> InferRequest:
    sent = message_class("inference.ModelInferRequest")(**fields).SerializeToString()
    return finish(read_steps(request_class("inference.ModelInferRequest").FromString(sent)))
