"""An inference request as a model takes it, and the model's answer as the protocol's client expects it.

the model has                    its worker gets                     and answers with
type hints                       its arguments, from tensors         one output of BYTES (typed.py)
outputs that its file tells      tensors, checked by the worker      the protocol's answer
declared inputs (in its yaml)    tensors, checked by the daemon      the protocol's answer
neither                          the request, as JSON                JSON of its own

The elements of all tensors are bytes in the frame; the worker makes arrays, lists or JSON of them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from tsctl.daemon.api.tensors.answers import parse_answer, write_answer
from tsctl.daemon.api.tensors.declared import check_datatypes, check_outputs, check_request, file_outputs
from tsctl.daemon.api.tensors.documents import described_request
from tsctl.daemon.api.tensors.forms import InferAnswer, InferRequest
from tsctl.daemon.api.tensors.parameters import check_parameters, headers_of
from tsctl.daemon.api.tensors.typed import output_of, typed_answer, typed_params
from tsctl.daemon.core.errors import PredictionFailed
from tsctl.daemon.core.job import Param, Reply
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.tensor_heads import ElementHeads, Head, InferHead, TensorHead, WantedTensor

HEAD_LENGTH = "Inference-Header-Content-Length"  # bytes of JSON before the tensors' own bytes


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
    wanted = [WantedTensor(each.name, each.binary) for each in request.outputs]
    if settings.inputs:
        check_request(request, settings.inputs, settings.outputs)
    if model.declared is not None:
        check_parameters(request.parameters, model.parameter_headers, [each.name for each in model.declared.inputs])
        read = partial(typed_answer, model.name, model.version, request.id, output_of(settings.outputs))
        params, elements = typed_params(request, model.declared)
        if model.declared.outputs and elements is not None:
            check_datatypes(request, model.declared)
            check_outputs(request, settings.outputs or file_outputs(model.declared))
            heads = [each for each in elements.inputs if each is not None]
            head = InferHead(request.id, request.parameters, heads, wanted, request.binary)
            return PreparedRequest(params, head, answer_of, told)
        return PreparedRequest(params, elements, read, told)
    inputs = [TensorHead(each.name, each.datatype, list(each.shape), each.parameters) for each in request.inputs]
    if settings.inputs:
        head = InferHead(request.id, request.parameters, inputs, wanted, request.binary)
        return PreparedRequest([Param(each.name, "", each.data) for each in request.inputs], head, answer_of, told)
    body = [described_request(request), *(each.data for each in request.inputs)]
    params = [Param("body", "application/json", each) for each in body]  # one name: a handler sees one body
    return PreparedRequest(params, ElementHeads([None, *inputs], True, wanted, request.binary), answer_of, told)


def answer_of(reply: Reply) -> InferAnswer:
    """Return the answer that a reply is.

    Raises:
        ValueError: the reply is no answer of the protocol; the message says why.
    """
    length = next((value for name, value in reply.headers if name.lower() == HEAD_LENGTH.lower()), None)
    return parse_answer(reply.body, int(length) if length is not None and length.isdecimal() else None)


def as_asked(prepared: PreparedRequest, request: InferRequest, reply: Reply) -> Reply:
    """Return a reply as the client asked for it: outputs as JSON or binary.

    An error, and the answer of a handler that answers with something else, stay as they are.
    """
    head = prepared.head
    if reply.error or isinstance(head, InferHead):
        return reply
    if head is not None and head.document and _is_as_asked(head, reply):
        return reply
    binary = {each.name: each.binary for each in request.outputs}
    try:
        answer = prepared.read(reply)
    except ValueError:
        return reply
    try:
        wanted = {each.name: binary.get(each.name, request.binary) for each in answer.outputs}
        body, length = write_answer(answer, wanted.__getitem__)
    except ValueError as error:
        return Reply(PredictionFailed.status, str(error).encode(), error=PredictionFailed.kind)
    kind = "application/json" if length is None else "application/octet-stream"
    more = [] if length is None else [(HEAD_LENGTH, str(length))]
    kept = [each for each in reply.headers if each[0].lower() not in ("content-type", HEAD_LENGTH.lower())]
    return Reply(reply.status, body, reply.phrase, [*kept, ("Content-Type", kind), *more])


def _is_as_asked(head: ElementHeads, reply: Reply) -> bool:
    """Return whether the answer of a model that declares nothing is all JSON, or all bytes, and is asked for so.

    The worker has written the bytes, if the answer is one of the protocol.
    """
    wanted = [each.binary for each in head.outputs] or [head.binary]
    if not any(wanted):
        return True
    return all(wanted) and any(name.lower() == HEAD_LENGTH.lower() for name, _ in reply.headers)
