"""`POST /v2/models/MODEL[/versions/VERSION]/infer`: an inference request over HTTP, and its way to the model."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from tsctl.daemon.api.inference.predict import predict
from tsctl.daemon.api.inference.turns import Reading, Turns
from tsctl.daemon.core.arena import Lease, Payload
from tsctl.daemon.core.errors import BadRequest, DaemonError
from tsctl.daemon.core.steps import Steps, finish
from tsctl.daemon.extensions.json_text.syntax import check_syntax
from tsctl.daemon.extensions.oip.answers import as_asked
from tsctl.daemon.extensions.oip.requests import READ_AT_ONCE, parse_steps
from tsctl.daemon.extensions.tensors.answers import HEAD_LENGTH
from tsctl.daemon.extensions.tensors.forms import InferRequest
from tsctl.daemon.extensions.tensors.prepared_request import prepare
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Request
from tsctl.daemon.models.version import ModelVersion

_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"
_START = 64  # bytes, in which JSON may begin with white space
_BINARY = b'"binary_data'  # begins the names of the binary extension's parameters
_INPUTS = b'"inputs"'
_SEARCHED = 1024 * 1024  # bytes at a time


def infer(
    exchange: Exchange,
    find: Callable[[], ModelVersion],
    turns: Turns,
    plain: Callable[[], Coroutine[Any, Any, None] | None],
    *,
    explain: bool,
    unnamed: bool,
) -> Coroutine[Any, Any, None] | None:
    """Read a request, and submit its job.

    A large request is read in turns with others, by the coroutine that is returned then.

    Args:
        find: returns the model, at the start and again after a large request was read: it may have been replaced.
        plain: answers a request whose body goes to the model as it is.
        unnamed: the client named no version.

    Raises:
        BadRequest: the request is malformed, or contradicts the model's declaration.
        DaemonError: the version does not accept the job, as `ModelVersion.submit`.
    """
    model = find()

    async def read_on(reading: Reading[InferRequest | None]) -> None:
        if not await turns.read_whole(reading, exchange, model.settings.client_timeout):
            return
        if reading.result is not None:
            _submit(exchange, find(), reading.result, explain, unnamed)
        elif (work := plain()) is not None:
            await work

    request = exchange.request
    try:
        if _is_long(request.body, _head_length(request)):
            return read_on(Reading(_counted_steps(request, model)))
        asked = finish(_steps(request, model))
    except DaemonError as error:
        model.metrics.refused(error)
        raise
    if asked is None:
        return plain()
    _submit(exchange, model, asked, explain, unnamed)
    return None


def _counted_steps(request: Request, model: ModelVersion) -> Steps[InferRequest | None]:
    """Return the request as `_steps`; count a refusal."""
    try:
        return (yield from _steps(request, model))
    except DaemonError as error:
        model.metrics.refused(error)
        raise


def _steps(request: Request, model: ModelVersion) -> Steps[InferRequest | None]:
    """Return, in steps, the request; None if the body is to go to the model as it is."""
    length = _head_length(request)
    if length is None:
        tensors = yield from _takes_tensors(model, request.body)
        if not tensors and not (yield from _names(request.body, _BINARY)):
            yield from _check_json(request)
            return None
    return (yield from parse_steps(request.body, length))


def _submit(exchange: Exchange, model: ModelVersion, asked: InferRequest, explain: bool, unnamed: bool) -> None:
    try:
        prepared = prepare(model, asked)
    except DaemonError as error:
        model.metrics.refused(error)
        raise
    change = partial(as_asked, prepared, asked)
    injected = (("explain", "True" if explain else "False"), *prepared.headers)
    predict(exchange, model, prepared.params, injected, unnamed=unnamed, infer=prepared.head, change=change, whole=True)


def _head_length(request: Request) -> int | None:
    text = request.header(HEAD_LENGTH)
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise BadRequest(f"{HEAD_LENGTH} is `{text[:100]}`; expected the number of bytes of the request's JSON.")
    return int(text)


def _is_long(body: Payload, head_length: int | None) -> bool:
    """Return whether reading a request could hold the event loop for long: JSON, and elements of BYTES; not numbers."""
    if len(body) <= READ_AT_ONCE:
        return False
    if head_length is None or head_length > READ_AT_ONCE:
        return True
    head = bytes((body.view if isinstance(body, Lease) else body)[:head_length])
    return b"BYTES" in head or b"\\" in head  # an escape may hide the word


def _takes_tensors(model: ModelVersion, body: Payload) -> Steps[bool]:
    """Return, in steps, whether a request without binary data is one in tensors.

    A built-in handler also takes, on this route, what it takes on others: an image, or JSON that is no such request.
    """
    if model.settings.inputs or model.declared is None or not model.declared.built_in:
        return bool(model.settings.inputs or model.declared)
    data = body.view if isinstance(body, Lease) else body
    return bytes(data[:_START]).lstrip().startswith(b"{") and (yield from _names(body, _INPUTS))


def _names(body: Payload, word: bytes) -> Steps[bool]:
    """Return, in steps, whether a request in JSON may name a member so; the word may also stand in its data."""
    data = body.view if isinstance(body, Lease) else body
    for at in range(0, len(data), _SEARCHED):
        if at:
            yield
        if word in bytes(data[at : at + _SEARCHED + len(word)]):
            return True
    return False


def _check_json(request: Request) -> Steps[None]:
    """Check a request in JSON, and note that it is: clients send JSON without a type, or, as curl, with that of a form.

    Raises:
        BadRequest: the body is said to be JSON, or begins like a request, and is not JSON.
    """
    kind = request.content_type.partition(";")[0].strip().lower()
    body = request.body
    data = body.view if isinstance(body, Lease) else memoryview(body)
    if kind != _JSON and not (kind in ("", _FORM) and bytes(data[:_START]).lstrip().startswith(b"{")):
        return
    yield from check_syntax(data)
    request.kind = _JSON
