"""`POST /v2/models/MODEL[/versions/VERSION]/generate` and `/generate_stream`: Triton's extension for texts.

    request     {"text_input": "Once", "top": 3, "parameters": {"top": 3}, "id": "7"}
    generate    {"id": "7", "model_name": "m", "model_version": "1.0", "text_output": "Once upon"}
    …_stream    the same, once for each piece, as server-sent events; an error is {"error": …}

Members are the model's inputs, at the top or in `parameters`; `text_input` is the one that is a text. The output has
the name that the archive declares, else `text_output`. Models that declare no text are refused.
"""

import codecs
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec

from tsctl.daemon.api.inference.predict import predict
from tsctl.daemon.api.inference.text_answers import TextAnswer, text_of
from tsctl.daemon.api.inference.turns import Reading, Turns
from tsctl.daemon.core.arena import Payload
from tsctl.daemon.core.errors import BadRequest, DaemonError, NotServed
from tsctl.daemon.core.job import Param, Reply
from tsctl.daemon.core.steps import Steps, finish
from tsctl.daemon.extensions.json_text.walk import read_members
from tsctl.daemon.extensions.tensors.elements import unpack
from tsctl.daemon.extensions.tensors.forms import InferRequest, Parameters, Tensor
from tsctl.daemon.extensions.tensors.json_tensors import WrittenTensor, read_parameters, tensor_steps
from tsctl.daemon.extensions.tensors.prepared_request import PreparedRequest, prepare
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.limits import MOST_JSON
from tsctl.daemon.http.messages import json_response
from tsctl.daemon.models.tensors import ARRAYS
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.texts.near_names import did_you_mean

GENERATE, STREAM = "generate", "generate_stream"
MOST_MEMBERS = 64
_TEXT_INPUT, _TEXT_OUTPUT = "text_input", "text_output"
_SHOWN = 100  # characters of a name in a message

Members = dict[str, msgspec.Raw]
Inputs = tuple[Mapping[str, str], list[str]]  # the kind of each, and which are texts


def generate(
    exchange: Exchange, find: Callable[[], ModelVersion], turns: Turns, *, stream: bool, unnamed: bool
) -> Coroutine[Any, Any, None] | None:
    """Read a request for a text, and submit its job; a long one by the coroutine that is returned then.

    Args:
        find: returns the model, at the start and again after a long request was read: it may have been replaced.
        turns: reads long requests.
        stream, unnamed: as of `_generate`.

    Raises:
        NotServed: the model declares no text.
        BadRequest: the request is malformed, or has a member that is no input.
        DaemonError: the version does not accept the job, as `ModelVersion.submit`.
    """
    model = find()
    inputs = _inputs_of(model)
    steps = _read_steps(exchange.request.body)

    async def read_on(reading: Reading[Members]) -> None:
        if await turns.read_whole(reading, exchange, model.settings.client_timeout):
            now = find()
            _generate(exchange, now, _inputs_of(now), reading.result, stream=stream, unnamed=unnamed)

    if len(exchange.request.body) > MOST_JSON:
        return read_on(Reading(steps))
    _generate(exchange, model, inputs, finish(steps), stream=stream, unnamed=unnamed)
    return None


def _generate(
    exchange: Exchange, model: ModelVersion, inputs: Inputs, given: Members, *, stream: bool, unnamed: bool
) -> None:
    """Submit the job of a request for a text.

    Args:
        given: the request's members.
        stream: answer piece by piece, as server-sent events.
        unnamed: the client named no version.

    Raises:
        BadRequest: the request is malformed, or has a member that is no input.
        DaemonError: the version does not accept the job, as `ModelVersion.submit`.
    """
    try:
        prepared, name = _prepared(model, inputs, given, stream=stream)
    except DaemonError as error:
        model.metrics.refused(error)
        raise
    injected = (("explain", "False"), *prepared.headers)
    receiver = Generated(exchange, model, prepared, name, stream=stream)
    predict(exchange, model, prepared.params, injected, unnamed=unnamed, infer=prepared.head, receiver=receiver)


def _inputs_of(model: ModelVersion) -> Inputs:
    """Return the model's inputs, and which are texts. Raise NotServed if none is, and count it."""
    kinds = _kinds_of(model)
    texts = [name for name, kind in kinds.items() if kind == "text"]
    if not texts:
        model.metrics.refused(
            error := NotServed(
                f"Model {model.name} declares no text, which /generate and /generate_stream take: its handler has no"
                f" parameter of type `str`. Use /v2/models/{model.name}/infer, /predictions/{model.name} or"
                " /v1/completions."
            )
        )
        raise error
    return kinds, texts


def _prepared(model: ModelVersion, inputs: Inputs, given: Members, *, stream: bool) -> tuple[PreparedRequest, str]:
    """Return the request as its job carries it, and the id that the client has given it, empty without one."""
    kinds, texts = inputs
    name = _decoded(given.pop("id"), str, "id") if "id" in given and "id" not in kinds else ""
    parameters: Members = {}
    if "parameters" in given and "parameters" not in kinds:
        parameters = _decoded(given.pop("parameters"), Members, "parameters")
    if _TEXT_INPUT in given and _TEXT_INPUT not in kinds and len(texts) == 1:
        if texts[0] in given:
            raise BadRequest(f"The request has both `{_TEXT_INPUT}` and `{texts[0]}`, which are one input.")
        given[texts[0]] = given.pop(_TEXT_INPUT)
    if "stream" in parameters and "stream" not in kinds:
        wanted = _decoded(parameters.pop("stream"), bool, "stream")
        if wanted and not stream:
            raise BadRequest(f"`stream` is true: POST /v2/models/{model.name}/{STREAM} answers piece by piece.")
    for each in [each for each in parameters if each in kinds]:
        if each in given:
            raise BadRequest(f"The request has `{each}` twice: at the top, and in `parameters`.")
        given[each] = parameters.pop(each)
    for each in given:
        if each not in kinds:
            raise _unknown(each, kinds)
    rest = {each: _decoded(value, bool | int | float | str, each) for each, value in parameters.items()}
    if model.declared is not None:
        for each in rest:
            if each not in model.parameter_headers and each not in ("priority", "timeout"):
                raise _unknown(each, kinds)
    asked = read_parameters("the request", rest)
    return _request_of(model, kinds, given, name, asked), name


def _kinds_of(model: ModelVersion) -> Mapping[str, str]:
    """Return the model's inputs, and what each is: text, or something else."""
    if model.declared is not None:
        return {each.name: each.kind for each in model.declared.inputs}
    return {
        each.name: "text" if each.datatype == "BYTES" and all(size in (-1, 1) for size in each.shape) else "tensor"
        for each in model.settings.inputs
    }


def _request_of(
    model: ModelVersion, kinds: Mapping[str, str], given: Members, name: str, parameters: Parameters
) -> PreparedRequest:
    tensors: list[Tensor] = []
    arrays: list[Param] = []
    declared = {each.name: each for each in model.settings.inputs}
    for each in (each for each in kinds if each in given):
        value = given[each]
        written = bytes(value)
        if model.declared is None:
            shape = declared[each].shape
            listed = written.startswith(b"[")
            data, count = (written, len(_decoded(value, list[msgspec.Raw], each))) if listed else (b"[%b]" % written, 1)
            tensor = WrittenTensor(each, [*[1] * (len(shape) - 1), count] if shape else [], declared[each].datatype)
            tensor.data = msgspec.Raw(data)
            tensors.append(finish(tensor_steps(f"input {each}", tensor, b"", 0))[0])
        elif kinds[each] in ARRAYS:
            arrays.append(Param(each, "application/json", written))
        else:
            is_text = kinds[each] == "text" or (written.startswith(b'"') and kinds[each] != "json")
            element = _decoded(value, str, each).encode("utf-8", "surrogatepass") if is_text else written
            tensors.append(Tensor(each, "BYTES", (1,), len(element).to_bytes(4, "little") + element, {}))
    prepared = prepare(model, InferRequest(name, parameters, tensors, [], False))
    return prepared._replace(params=[*prepared.params, *arrays]) if arrays else prepared


def _read_steps(body: Payload) -> Steps[Members]:
    """Return, in steps, the members of a request. Raise BadRequest if it is no object, or has too many."""
    found, _ = yield from read_members(body, MOST_MEMBERS, MOST_JSON)
    if len(found) > MOST_MEMBERS:
        raise BadRequest(f"The request has {len(found)} members; at most {MOST_MEMBERS} are read.")
    return found


def _decoded(value: msgspec.Raw, kind: Any, name: str) -> Any:
    size = len(memoryview(value))
    if size > MOST_JSON and kind is not str:
        raise BadRequest(f"`{name[:_SHOWN]}` has {size} bytes; at most {MOST_JSON} are read, but for a text.")
    try:
        return msgspec.json.decode(value, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"`{name[:_SHOWN]}` is invalid: {error}.") from None


def _unknown(name: str, kinds: Mapping[str, str]) -> BadRequest:
    near = did_you_mean(name, kinds) or "."
    return BadRequest(f"`{name[:_SHOWN]}` is no input of the model, which takes {', '.join(kinds)}{near}")


class Generated(TextAnswer):
    """The answer with texts in JSON.

    Args:
        name: the request's, empty without one.
        stream: as in `generate`.
    """

    how_to_stream = f"use {STREAM}"

    def __init__(
        self, exchange: Exchange, model: ModelVersion, prepared: PreparedRequest, name: str, *, stream: bool
    ) -> None:
        super().__init__(exchange, stream=stream)
        self._read = prepared.read
        self._typed = model.declared is not None
        outputs = model.settings.outputs
        self._output = outputs[0].name if outputs else _TEXT_OUTPUT
        self._head = {**({"id": name} if name else {}), "model_name": model.name, "model_version": model.version}
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def _end(self, reply: Reply) -> None:
        exchange = self._exchange
        members = self._members_of(reply, last=True)
        if self._stream:
            self._start()
            if reply.body or not self._begun:
                exchange.send(_event({**self._head, **members}))
            exchange.finish()
            return
        if self._begun:
            before = b"".join(self._pieces).decode("utf-8", "surrogatepass")
            members = {self._output: before + members.get(self._output, "")}
        exchange.respond(json_response({**self._head, **members}))

    def _piece(self, piece: Reply) -> bytes:
        members = self._members_of(piece, last=False)
        if self._stream:
            return _event({**self._head, **members})
        return str(members.get(self._output, "")).encode("utf-8", "surrogatepass")

    def _error(self, reply: Reply) -> bytes:
        return _event({"error": reply.body.decode("utf-8", "replace")})

    def _members_of(self, reply: Reply, *, last: bool) -> dict[str, Any]:
        """Return the outputs of a reply. Raise ValueError if it is no answer of the protocol."""
        if self._typed:
            body = reply.body if self._begun or not last else text_of(reply)
            return {self._output: self._decoder.decode(body, last)}
        if not reply.body:
            return {}
        found: dict[str, Any] = {}
        for each in self._read(reply).outputs:
            values = [_plain(value) for value in unpack(each.datatype, bytes(each.data))]
            found[each.name] = values[0] if len(values) == 1 else values
        return found


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _event(document: Mapping[str, Any]) -> bytes:
    return b"data: %b\n\n" % json.dumps(document).encode()
