"""Whether the bytes of a tensor are as many as its datatype and shape say."""

import math
from collections.abc import Sequence

from tsctl.daemon.core.arena import Lease, Payload
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.extensions.tensors.elements import LENGTH, count_steps, size_of
from tsctl.daemon.model_settings.declarations import MOST_RANK

# Of a tensor with a dimension of 0 the bytes do not bound the other dimensions, and NumPy refuses what it could not
# address if the 0 were a 1.
MOST_ELEMENTS = 2**31


def check_shape(what: str, shape: Sequence[int]) -> int:
    """Return the number of elements of a shape.

    Args:
        what: the tensor, for the sentence: "input INPUT0".

    Raises:
        BadRequest: the shape has too many dimensions, or a negative one; or without elements, too large ones.
    """
    if len(shape) > MOST_RANK:
        raise BadRequest(f"The shape of {what} has {len(shape)} dimensions; at most {MOST_RANK} are read.")
    if shape and min(shape) < 0:
        raise BadRequest(f"The shape of {what} is {list(shape)}; expected dimensions of at least 0.")
    count = math.prod(shape)
    if not count and math.prod(each for each in shape if each) > MOST_ELEMENTS:
        raise BadRequest(
            f"The shape of {what} is {list(shape)}; without the 0 it would be more than {MOST_ELEMENTS} elements."
        )
    return count


def check_steps(what: str, datatype: str, shape: Sequence[int], data: Payload) -> Steps[None]:
    """Check the bytes of a tensor against its shape, in steps.

    Raises:
        BadRequest: the datatype is unknown, the shape is impossible, or there are more or fewer bytes.
    """
    count, size = check_shape(what, shape), size_of(datatype)
    if size:
        if len(data) != count * size:
            raise BadRequest(
                f"{len(data)} bytes for {what}; its shape {list(shape)} of {datatype} needs {count * size}."
            )
        return
    if count * LENGTH.size > len(data):
        raise BadRequest(
            f"{len(data)} bytes for {what}; its shape {list(shape)} of BYTES needs at least {count * LENGTH.size}."
        )
    try:
        found = yield from count_steps(data.view if isinstance(data, Lease) else data)
    except BadRequest as error:
        raise BadRequest(f"The bytes of {what} are not BYTES elements: {error}") from None
    if found != count:
        raise BadRequest(f"{found} elements for {what}; its shape {list(shape)} needs {count}.")
