"""An inference request as a model takes it, and the model's answer as the protocol's client expects it.

the model has                    its worker gets                     and answers with
type hints                       its arguments, from tensors         one output of BYTES
outputs that its file tells      tensors, checked by the worker      the protocol's answer
declared inputs (in its yaml)    tensors, checked by the daemon      the protocol's answer
neither                          the request, as JSON                JSON of its own

The elements of all tensors are bytes in the frame; the worker makes arrays, lists or JSON of them.
"""

import base64
import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Param, Reply
from tsctl.daemon.extensions.tensors.answers import answer_of
from tsctl.daemon.extensions.tensors.declaration_check import check_datatypes, check_outputs, check_request
from tsctl.daemon.extensions.tensors.elements import LENGTH
from tsctl.daemon.extensions.tensors.forms import InferAnswer, InferRequest, Tensor, describe_tensor
from tsctl.daemon.extensions.tensors.parameters import check_parameters, headers_of
from tsctl.daemon.models.tensors import ARRAYS, OUTPUT, file_outputs
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.tensor_heads import ElementHeads, Head, InferHead, TensorHead, WantedTensor
from tsctl.handlers.wire import Declared

_DATA = "data"
_FILES = ("image", "audio")
_MOST_EMPTY = 100_000  # lists without elements
_BASE64 = re.compile(rb"[0-9A-Za-z+/]{64}|[0-9A-Za-z+/]+={0,2}\Z")  # the start; lines have 76 characters, or 64


def typed_params(request: InferRequest, declared: Declared) -> tuple[list[Param], ElementHeads | None]:
    """Typed and built-in handlers, and the protocol: each argument is an input, and the answer is one output.

    A text, an image, a sound, bytes and JSON are BYTES of one element, named after the argument; what stands in it is
    what a form's field of this name would hold. An array is a tensor of any datatype and shape, as its hint names
    neither, unless the archive's model-config.yaml declares them; it may declare every input, and the name of the
    output. The worker makes an array's values of its bytes.

    A built-in handler has one input, `data`. An image or a sound may be in base64, as JSON holds no other bytes.

    Return a request's inputs as the fields of a form, and what describes those that are arrays, if there is one.

    Raises:
        BadRequest: an input has another name than every argument, or is no single element of BYTES; or an array is
            many empty lists, which no bytes of the request stand for.
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
        if kinds[name] in ARRAYS:
            _check_empty(tensor)
            heads[name] = TensorHead(name, tensor.datatype, list(tensor.shape))
            params[name] = Param(name, "application/json", tensor.data)  # a handler has found lists in JSON there
            continue
        if tensor.datatype != "BYTES" or math.prod(tensor.shape) != 1:
            found = f"{tensor.datatype} of shape {list(tensor.shape)}"
            raise BadRequest(f"The input {name} is {found}; the model takes BYTES of shape [1].")
        element = bytes(tensor.data)[LENGTH.size :]
        params[name] = Param(name, "", _file(element) if kinds[name] in _FILES else element)
    return list(params.values()), ElementHeads([heads.get(name) for name in params]) if heads else None


def typed_answer(name: str, version: str, request_id: str, output: str, reply: Reply) -> InferAnswer:
    """Return the answer of a typed handler as one output of this name."""
    data = LENGTH.pack(len(reply.body)) + reply.body
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


class PreparedRequest(NamedTuple):
    """A request as its job carries it, and how the reply is read.

    Attributes:
        head: describes the tensors, whose bytes are the parameters; None if there is none among the parameters.
        headers: those that parameters of the request stand for.
        read: returns the protocol's answer that a reply is; raises ValueError with the reason if it is none.
    """

    params: Sequence[Param]
    head: Head | None
    read: Callable[[Reply], InferAnswer]
    headers: tuple[tuple[str, str], ...] = ()


def prepare(model: ModelVersion, request: InferRequest) -> PreparedRequest:
    """Check a request, and return what its job carries.

    Raises:
        BadRequest: the request contradicts the model's declaration, or has a parameter that is not served.
    """
    settings = model.settings
    told = headers_of(request.parameters, model.parameter_headers)
    if settings.inputs:
        check_request(request, settings.inputs, settings.outputs)
    if model.declared is not None:
        check_parameters(request.parameters, model.parameter_headers, [each.name for each in model.declared.inputs])
        output = settings.outputs[0].name if settings.outputs else OUTPUT
        read = partial(typed_answer, model.name, model.version, request.id, output)
        params, elements = typed_params(request, model.declared)
        if model.declared.outputs and elements is not None:
            check_datatypes(request, model.declared)
            check_outputs(request, settings.outputs or file_outputs(model.declared))
            heads = [each for each in elements.inputs if each is not None]
            head = InferHead(request.id, request.parameters, heads, _wanted(request), request.binary)
            return PreparedRequest(params, head, answer_of, told)
        return PreparedRequest(params, elements, read, told)
    inputs = [TensorHead(each.name, each.datatype, list(each.shape), each.parameters) for each in request.inputs]
    if settings.inputs:
        head = InferHead(request.id, request.parameters, inputs, _wanted(request), request.binary)
        return PreparedRequest([Param(each.name, "", each.data) for each in request.inputs], head, answer_of, told)
    body = [described_request(request), *(each.data for each in request.inputs)]
    params = [Param("body", "application/json", each) for each in body]  # one name: a handler sees one body
    return PreparedRequest(
        params, ElementHeads([None, *inputs], True, _wanted(request), request.binary), answer_of, told
    )


def _wanted(request: InferRequest) -> list[WantedTensor]:
    return [WantedTensor(each.name, each.binary) for each in request.outputs]


def described_request(request: InferRequest) -> bytes:
    """Return a request as JSON without its tensors' elements, which the worker writes into it."""
    document: dict[str, Any] = {"id": request.id} if request.id else {}
    if request.parameters:
        document["parameters"] = request.parameters
    document["inputs"] = [describe_tensor(each) for each in request.inputs]
    if request.outputs:
        document["outputs"] = [
            {"name": each.name} | ({"parameters": each.parameters} if each.parameters else {})
            for each in request.outputs
        ]
    return msgspec.json.encode(document)
