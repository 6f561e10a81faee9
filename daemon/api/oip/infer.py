"""`POST /v2/models/MODEL[/versions/VERSION]/infer`: an inference request over HTTP, and its way to the model."""

import re
import zlib
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import msgspec

from daemon.api.inference.predict import predict
from daemon.api.inference.turns import Turns
from daemon.api.oip.prepared import HEAD_LENGTH, as_asked, prepare
from daemon.api.tensors.forms import InferRequest
from daemon.api.tensors.requests import parse_request, parse_steps
from daemon.api.tensors.steps import Steps
from daemon.core.arena import Lease, Payload
from daemon.core.errors import BadRequest, DaemonError
from daemon.core.job import Param
from daemon.http.exchange import Exchange
from daemon.http.messages import Request
from daemon.http.parsing.sizes import BodyTooLarge
from daemon.models.version import ModelVersion

_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"
_START = 64  # bytes, in which JSON may begin with white space
_BINARY = re.compile(rb'"binary_data')  # begins the names of the binary extension's parameters
_INPUTS = re.compile(rb'"inputs"')
READ_AT_ONCE = 16 * 1024  # bytes of JSON, or of elements of BYTES; at most 2.5 ms, of nothing but empty texts
_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}  # of zlib, by the coding's name


def read(
    exchange: Exchange, find: Callable[[], ModelVersion], most: int, turns: Turns, *, explain: bool, unnamed: bool
) -> Coroutine[Any, Any, None] | bool:
    """Read an inference request, and submit its job; return False if the body is to go to the model as it is.

    A large request is read in turns with others, by the coroutine that is returned then.

    Args:
        find: returns the model, at the start and again after a large request was read: it may have been replaced.
        most: bytes of a request body, decompressed.
        turns: reads large requests.
        unnamed: the client named no version.

    Raises:
        BadRequest: the request is malformed, or contradicts the model's declaration.
        BodyTooLarge: the body is too large once it is decompressed.
        DaemonError: the version does not accept the job, as `ModelVersion.submit`.
    """
    request, model = exchange.request, find()
    try:
        _decompress(request, most)
        length = _head_length(request)
        if length is None and not (_takes_tensors(model, request.body) or _asks_for_binary(request.body)):
            _check_json(request)
            return False
        if _is_long(request.body, length):
            reading = TensorReading(parse_steps(request.body, length), model)
            then = partial(_submit_read, exchange, find, reading, explain, unnamed)
            return turns.read(reading, exchange, model.settings.client_timeout, then)
        asked = parse_request(request.body, length)
    except DaemonError as error:
        model.metrics.refused(error)
        raise
    _submit(exchange, model, asked, explain, unnamed)
    return True


class TensorReading:
    """A large request, read in turns with others, as a form is.

    Attributes:
        asked: the request, when `advance` has returned True.
        params: none; a form's are those of its fields.
    """

    asked: InferRequest

    def __init__(self, steps: Steps[InferRequest], model: ModelVersion) -> None:
        self._steps = steps
        self._model = model
        self.params: dict[str, Param] = {}

    def advance(self) -> bool:
        """Read one slice; return whether it was the last.

        Raises:
            BadRequest: the request is malformed.
        """
        try:
            next(self._steps)
        except StopIteration as ended:
            self.asked = ended.value
            return True
        except DaemonError as error:
            self._model.metrics.refused(error)
            raise
        return False


def _submit_read(
    exchange: Exchange,
    find: Callable[[], ModelVersion],
    reading: TensorReading,
    explain: bool,
    unnamed: bool,
    params: list[Param],  # noqa: ARG001 - of a form
) -> None:
    _submit(exchange, find(), reading.asked, explain, unnamed)


def _submit(exchange: Exchange, model: ModelVersion, asked: InferRequest, explain: bool, unnamed: bool) -> None:
    try:
        prepared = prepare(model, asked)
    except DaemonError as error:
        model.metrics.refused(error)
        raise
    change = partial(as_asked, prepared, asked)
    injected = (("explain", "True" if explain else "False"),)
    predict(exchange, model, prepared.params, injected, unnamed=unnamed, infer=prepared.head, change=change)


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


def _takes_tensors(model: ModelVersion, body: Payload) -> bool:
    """Return whether a request without binary data is one in tensors.

    A built-in handler also takes, on this route, what it takes on others: an image, or JSON that is no such request.
    """
    if model.settings.inputs or model.declared is None or not model.declared.built_in:
        return bool(model.settings.inputs or model.declared)
    data = body.view if isinstance(body, Lease) else body
    return bytes(data[:_START]).lstrip().startswith(b"{") and _INPUTS.search(data) is not None


def _asks_for_binary(body: Payload) -> bool:
    """Return whether a request in JSON may ask for binary outputs; the words may also stand in its data."""
    return _BINARY.search(body.view if isinstance(body, Lease) else body) is not None


def _check_json(request: Request) -> None:
    """Check a request in JSON, and note that it is: clients send JSON without a type, or, as curl, with that of a form.

    Raises:
        BadRequest: the body is said to be JSON, or begins like a request, and is not JSON.
    """
    kind = request.content_type.partition(";")[0].strip().lower()
    body = request.body
    data = body.view if isinstance(body, Lease) else body
    if kind != _JSON and not (kind in ("", _FORM) and bytes(data[:_START]).lstrip().startswith(b"{")):
        return
    try:
        msgspec.json.decode(data, type=msgspec.Raw)  # checks the syntax alone: 1.4 ms for 150 000 numbers
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"The body is not JSON: {error}") from None
    request.kind = _JSON


def _decompress(request: Request, most: int) -> None:
    """Replace a compressed body by what is in it.

    Raises:
        BadRequest: the coding is unknown, or the body is not in it.
        BodyTooLarge: there are more than `most` bytes.
    """
    coding = request.header("content-encoding").strip().lower()
    if coding in ("", "identity"):
        return
    if coding not in _WINDOWS:
        raise BadRequest(f"Content-Encoding is `{coding[:100]}`; expected gzip, deflate, or none.")
    reader = zlib.decompressobj(_WINDOWS[coding])
    try:
        body = reader.decompress(bytes(request.body), most + 1)
    except zlib.error as error:
        raise BadRequest(f"The body is not {coding}: {error}") from None
    if len(body) > most:
        raise BodyTooLarge("a decompressed body", len(body), most)
    if not reader.eof:
        raise BadRequest(f"The body ends within its {coding} data.")
    request.body = body
