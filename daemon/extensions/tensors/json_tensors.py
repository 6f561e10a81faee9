"""A tensor as it is written in JSON, with its elements there or after it as bytes.

An input or output with the parameter `binary_data_size` has as many bytes after the JSON, in their order (Triton's
"binary tensor data extension").
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tsctl.daemon.core.arena import Lease, Payload
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.extensions.tensors.forms import Parameters, Tensor
from tsctl.daemon.extensions.tensors.json_data import pack_steps
from tsctl.daemon.extensions.tensors.sizes import check_steps
from tsctl.daemon.model_settings.declarations import LONGEST_NAME

SIZE = "binary_data_size"
MOST_PARAMETERS = 256  # of a request, a tensor or an output
SHOWN = 100  # characters of a value in a message

RawParameters = dict[str, bool | int | float | str] | None
Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
# 64 bits with a sign: frames, gRPC and NumPy hold no more.
Dimension = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class WrittenTensor(msgspec.Struct):
    """One tensor in JSON; without `data` if its bytes follow."""

    name: Name
    shape: list[Dimension]
    datatype: str
    parameters: RawParameters = None
    data: msgspec.Raw = msgspec.Raw()

    @property
    def has_data(self) -> bool:
        return bytes(memoryview(self.data)[:4]) not in (b"", b"null")


def tensor_steps(what: str, written: WrittenTensor, body: Payload, at: int) -> Steps[tuple[Tensor, int]]:
    """Return, in steps, a tensor, and where the bytes of the next one begin.

    Args:
        what: the tensor, for a sentence: "input INPUT0".
        at: where its bytes begin, if it has any after the JSON.

    Raises:
        BadRequest: its elements are missing, or not what its datatype and shape say.
    """
    size = (written.parameters or {}).get(SIZE)
    shape = tuple(written.shape)
    data: Payload
    if size is None:
        if not written.has_data:
            raise BadRequest(f"The {what} has neither `data` nor the parameter `{SIZE}`.")
        take = body.beside if isinstance(body, Lease) else None
        data = yield from pack_steps(what, written.datatype, shape, written.data, take)
    else:
        if type(size) is not int or size < 0:
            raise BadRequest(f"`{SIZE}` of {what} is {shown(size)}; expected a number of bytes.")
        if written.has_data:
            raise BadRequest(f"The {what} has both `data` and the parameter `{SIZE}`.")
        if at + size > len(body):
            raise BadRequest(
                f"`{SIZE}` of {what} is {shown(size)}, but only {len(body) - at} bytes are left in the body."
            )
        data = _part(body, at, at + size)
        at += size
        yield from check_steps(what, written.datatype, shape, data)
    return Tensor(written.name, written.datatype, shape, data, read_parameters(what, written.parameters, SIZE)), at


def read_parameters(what: str, parameters: RawParameters, without: str | None = None) -> Parameters:
    """Return the parameters of a request, an answer or a tensor.

    Args:
        what: the thing that has them, for a sentence: "input INPUT0".
        without: a parameter to leave out; None for none.

    Raises:
        BadRequest: there are more than `MOST_PARAMETERS`, or one is a number that 64 bits cannot hold.
    """
    if parameters is not None and len(parameters) > MOST_PARAMETERS:
        raise BadRequest(f"There are {len(parameters)} parameters of {what}; at most {MOST_PARAMETERS} are read.")
    for name, value in (parameters or {}).items():
        if type(value) is int and not -(2**63) <= value < 2**64:
            raise BadRequest(f"The parameter {name[:SHOWN]} of {what} is a whole number of more than 64 bits.")
    return {name: value for name, value in (parameters or {}).items() if name != without}


def _part(body: Payload, start: int, end: int) -> Payload:
    if isinstance(body, bytes):
        return body[start:end]
    return body.part(start, end) if start < end else b""  # a place in the arena has at least one byte


def shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
