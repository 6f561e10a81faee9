"""Typed and built-in handlers, and the protocol: each argument is an input, and the answer is one output.

A text, an image, a sound, bytes and JSON are BYTES of one element, named after the argument; what stands in it is what
a form's field of this name would hold. An array is a tensor of any datatype and shape, as its hint names neither,
unless the archive's model-config.yaml declares them; it may declare every input, and the name of the output. The worker
makes an array's values of its bytes.

A built-in handler has one input, `data`. An image or a sound may be in base64, as JSON holds no other bytes.
"""

import base64
import math
import re
from collections.abc import Sequence

from tsctl.daemon.api.tensors.declared import ARRAYS, OUTPUT
from tsctl.daemon.api.tensors.elements import unpack
from tsctl.daemon.api.tensors.forms import InferAnswer, InferRequest, Tensor
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Param, Reply
from tsctl.daemon.model_settings.declarations import DeclaredTensor
from tsctl.handlers.tensor_heads import ElementHeads, TensorHead
from tsctl.handlers.wire import Declared

_DATA = "data"
_FILES = ("image", "audio")
_MOST_EMPTY = 100_000  # lists without elements
_BASE64 = re.compile(rb"[0-9A-Za-z+/]{64}|[0-9A-Za-z+/]+={0,2}\Z")  # the start; lines have 76 characters, or 64


def typed_params(request: InferRequest, declared: Declared) -> tuple[list[Param], ElementHeads | None]:
    """Return a request's inputs as the fields of a form, and what describes those that are arrays, if there is one.

    Raises:
        BadRequest: an input has another name than every argument, is there twice, or is no single element of BYTES; or
            an array is many empty lists, which no bytes of the request stand for.
    """
    kinds = {each.name: each.kind for each in declared.inputs}
    if declared.built_in and len(kinds) == 1:
        kinds |= {_DATA: declared.inputs[0].kind}  # the name that every built-in handler's one input has
    params: dict[str, Param] = {}
    heads: dict[str, TensorHead] = {}
    for tensor in request.inputs:
        name = tensor.name
        if name not in kinds:
            names = ", ".join(each.name for each in declared.inputs)
            raise BadRequest(f"Unknown input: {name}; the model takes {names}.")
        if name in params:
            raise BadRequest(f"The input {name} is there twice.")
        if kinds[name] in ARRAYS:
            _check_empty(tensor)
            heads[name] = TensorHead(name, tensor.datatype, list(tensor.shape))
            params[name] = Param(name, "application/json", tensor.data)  # a handler has found lists in JSON there
            continue
        single = tensor.datatype == "BYTES" and math.prod(tensor.shape) == 1  # of many, the event loop reads none
        elements = unpack("BYTES", bytes(tensor.data)) if single else []
        if len(elements) != 1:
            found = f"{tensor.datatype} of shape {list(tensor.shape)}"
            raise BadRequest(f"The input {name} is {found}; the model takes BYTES of shape [1].")
        (element,) = elements
        assert isinstance(element, bytes)
        params[name] = Param(name, "", _file(element) if kinds[name] in _FILES else element)
    return list(params.values()), ElementHeads([heads.get(name) for name in params]) if heads else None


def output_of(outputs: Sequence[DeclaredTensor]) -> str:
    """Return the name of the one output; `outputs` are the archive's, if it declares any."""
    return outputs[0].name if outputs else OUTPUT


def typed_answer(name: str, version: str, request_id: str, output: str, reply: Reply) -> InferAnswer:
    """Return the answer of a typed handler as one output of this name."""
    data = len(reply.body).to_bytes(4, "little") + reply.body
    return InferAnswer(name, version, request_id, {}, [Tensor(output, "BYTES", (1,), data, {})])


def _check_empty(tensor: Tensor) -> None:
    shape = tensor.shape
    if 0 in shape and math.prod(shape[: shape.index(0)]) > _MOST_EMPTY:
        raise BadRequest(f"{tensor.name} of shape {list(shape)} is empty; at most {_MOST_EMPTY} lists are made.")


def _file(element: bytes) -> bytes:
    """Return the bytes of an image or a sound, which may be in base64: neither begins like that."""
    if not element.isascii() or _BASE64.match(element) is None:
        return element
    try:
        return base64.b64decode(element)
    except ValueError:
        return element
