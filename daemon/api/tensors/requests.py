"""Inference requests of the Open Inference Protocol over HTTP: JSON, or JSON and the tensors' bytes after it.

With the binary extension (Triton's, "binary tensor data extension") the header `Inference-Header-Content-Length` is the
length of the JSON; an input with the parameter `binary_data_size` has as many bytes after it, in the inputs' order.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from daemon.api.tensors.forms import InferRequest, Parameters, Tensor, WantedOutput
from daemon.api.tensors.json_data import pack_json
from daemon.api.tensors.sizes import check_bytes
from daemon.core.arena import Lease, Payload
from daemon.core.errors import BadRequest
from daemon.model_settings.declarations import MOST_TENSORS

SIZE, BINARY, ALL_BINARY = "binary_data_size", "binary_data", "binary_data_output"  # parameters of the extension
# Parameters of extensions that would change the answer, and are not served.
_REFUSED = {
    "shared_memory_region": "shared memory: send the tensor in the request",
    "classification": "classification: choose the classes from the output",
}

RawParameters = dict[str, bool | int | float | str] | None


class WrittenTensor(msgspec.Struct):
    """One tensor in JSON; without `data` if its bytes follow."""

    name: str
    shape: list[int]
    datatype: str
    parameters: RawParameters = None
    data: msgspec.Raw = msgspec.Raw()

    @property
    def has_data(self) -> bool:
        return bytes(memoryview(self.data)[:4]) not in (b"", b"null")


class _WrittenOutput(msgspec.Struct):
    name: str
    parameters: RawParameters = None


class _WrittenRequest(msgspec.Struct):
    inputs: list[WrittenTensor]
    id: str | None = None
    parameters: RawParameters = None
    outputs: list[_WrittenOutput] | None = None


_decode = msgspec.json.Decoder(_WrittenRequest).decode


def parse_request(body: Payload, head_length: int | None = None) -> InferRequest:
    """Parse a request; the bytes of its tensors stay in the arena, if that is where they are.

    Args:
        head_length: bytes of its JSON; None if it is JSON as a whole.

    Raises:
        BadRequest: the request is malformed, or a tensor's elements are not what its datatype and shape say.
    """
    if head_length is not None and head_length > len(body):
        raise BadRequest(f"The request's JSON is said to have {head_length} bytes; the body has {len(body)}.")
    view = body.view if isinstance(body, Lease) else memoryview(body)
    try:
        written = _decode(view if head_length is None else view[:head_length])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"The body is no inference request in JSON: {error}") from None
    if len(written.inputs) > MOST_TENSORS:
        raise BadRequest(f"The request has {len(written.inputs)} inputs; at most {MOST_TENSORS} are read.")
    binary = _truth("the request", written.parameters, ALL_BINARY)
    inputs, at = [], len(body) if head_length is None else head_length
    for each in written.inputs:
        tensor, at = read_tensor(f"input {each.name}", each, body, at)
        inputs.append(tensor)
    if at != len(body):
        raise BadRequest(
            f"{len(body) - at} bytes follow the last input's; `{SIZE}` of the inputs says how many there are."
        )
    outputs = [
        WantedOutput(
            each.name, _truth(f"output {each.name}", each.parameters, BINARY, binary), _without(each.parameters, BINARY)
        )
        for each in written.outputs or ()
    ]
    return InferRequest(written.id or "", _without(written.parameters, ALL_BINARY), inputs, outputs, binary)


def read_tensor(what: str, written: WrittenTensor, body: Payload, at: int) -> tuple[Tensor, int]:
    """Return a tensor, and where the bytes of the next one begin.

    Args:
        what: the tensor, for a sentence: "input INPUT0".
        at: where its bytes begin, if it has any after the JSON.

    Raises:
        BadRequest: its elements are missing, or not what its datatype and shape say.
    """
    parameters = written.parameters or {}
    size = parameters.get(SIZE)
    shape = tuple(written.shape)
    data: Payload
    if size is None:
        _check_served(what, parameters)
        if not written.has_data:
            raise BadRequest(f"{what.capitalize()} has neither `data` nor the parameter `{SIZE}`.")
        data = pack_json(what, written.datatype, shape, written.data)
    else:
        if type(size) is not int or size < 0:
            raise BadRequest(f"`{SIZE}` of {what} is {size}; expected a number of bytes.")
        if written.has_data:
            raise BadRequest(f"{what.capitalize()} has both `data` and the parameter `{SIZE}`.")
        if at + size > len(body):
            raise BadRequest(f"`{SIZE}` of {what} is {size}, but only {len(body) - at} bytes are left in the body.")
        data = body.part(at, at + size) if isinstance(body, Lease) and size else bytes(body)[at : at + size]
        at += size
        check_bytes(what, written.datatype, shape, data)
    return Tensor(written.name, written.datatype, shape, data, _without(parameters, SIZE)), at


def _check_served(what: str, parameters: Mapping[str, Any]) -> None:
    for name, sentence in _REFUSED.items():
        if name in parameters:
            raise BadRequest(f"{what.capitalize()} asks for `{name}`; tsctl does not serve {sentence}.")


def _truth(what: str, parameters: RawParameters, name: str, default: bool = False) -> bool:
    _check_served(what, parameters or {})
    value = (parameters or {}).get(name, default)
    if type(value) is not bool:
        raise BadRequest(f"`{name}` of {what} is {value}; expected true or false.")
    return value


def _without(parameters: RawParameters, name: str) -> Parameters:
    return {key: value for key, value in (parameters or {}).items() if key != name}
