"""Conversion of an HTTP request to a job, and of the job's replies to an answer: whole, or streamed."""

from collections.abc import Callable, Sequence
from functools import partial
from random import random
from typing import Protocol

from tsctl.daemon.api.inference.forms import Form, read_body
from tsctl.daemon.api.inference.raw_forms import RawForm, is_urlencoded, read_raw_form
from tsctl.daemon.core.errors import BadRequest, DaemonError, PredictionFailed
from tsctl.daemon.core.job import Job, JobPhase, Param, Piece, Reply, TimeBudget
from tsctl.daemon.core.timing import Timing
from tsctl.daemon.core.trace import TRACEPARENT
from tsctl.daemon.http.bounds.known_client import share_holder
from tsctl.daemon.http.bounds.sending import NotRead
from tsctl.daemon.http.deadline_header import HEADER, PRIORITY_HEADER, read_budget
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Request, Response, reply_response
from tsctl.daemon.models.archives.sample import MOST_BYTES, RECORDED, Sample
from tsctl.daemon.models.shadowing.watching import AskedOf, Receivers
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.tensor_heads import Head
from tsctl.handlers.wire import Declared, Input

CLIENT_TIMEOUT = "clientTimeoutInMills"


def form_input_of(declared: Declared | None) -> Input | None:
    """Return the one input of a typed handler, unless that is an image; None for several."""
    inputs = () if declared is None or declared.built_in else declared.inputs
    return inputs[0] if len(inputs) == 1 and inputs[0].kind != "image" else None


def parameters_of(request: Request, wanted: Input | None = None) -> list[Param] | Form | RawForm:
    """Return the parameters of a request's body, or the unfinished form if its first slice was not all of the body.

    Args:
        wanted: the one input of the model, unless that is an image: a urlencoded body may be the input itself.

    Raises:
        BadRequest: the form is malformed or exceeds a limit.
    """
    kind = request.kind
    if wanted is not None and is_urlencoded(request.content_type):
        return read_raw_form(request.body, wanted)
    return read_body(request.content_type if kind is None else kind, request.body)


def with_query(request: Request, params: list[Param]) -> list[Param]:
    """Return the parameters of a body, then those of the query with other names, as bytes.

    Raises:
        BadRequest: the query has too many parameters.
    """
    named = {param.name for param in params}
    return params + [Param(name, "", text.encode()) for name, text in request.query.items() if name not in named]


def budget_of(request: Request, most: float) -> TimeBudget | None:
    """Return the time that a request may take, counted from the end of its headers; None without a limit.

    Args:
        most: the model's limit in seconds, 0.0 for none; caps the client's deadline.

    Raises:
        BadRequest: the client's deadline is invalid.
    """
    if request.budget is None and not most:
        return None
    if request.budget is not None:
        asked = read_budget(request.budget)
        if not most or asked <= most:
            return TimeBudget(asked, request.began, HEADER, asked != most)
    return TimeBudget(most, request.began, CLIENT_TIMEOUT) if most else None


def is_low(request: Request) -> bool:
    """Return whether a request has low priority.

    Raises:
        BadRequest: the request's priority is unknown.
    """
    if request.priority is None:
        return False
    if request.priority not in ("low", "normal"):
        raise BadRequest(f"{PRIORITY_HEADER} is `{request.priority}`; expected low or normal.")
    return request.priority == "low"


def names_caller(headers: Sequence[tuple[str, str]]) -> bool:
    """Return whether a request has a `traceparent`, which may be invalid."""
    for header in headers:  # noqa: SIM110 - compiled, a loop costs a fraction of a generator
        if len(header[0]) == len(TRACEPARENT) and header[0].lower() == TRACEPARENT:
            return True
    return False


class ReplyReceiver(Protocol):
    """The receiver of a job's replies: any number of pieces, and then the last reply, which may be the only one."""

    def deliver(self, reply: Reply) -> None:
        """Take the last reply, or the error that the job ended with."""

    def stream(self, piece: Reply) -> None:
        """Take a piece."""


def predict(
    exchange: Exchange,
    model: ModelVersion,
    params: Sequence[Param],
    injected: Sequence[tuple[str, str]],
    *,
    unnamed: bool = True,
    repeatable: bool = False,
    infer: Head | None = None,
    change: Callable[[Reply], Reply] | None = None,
    receiver: ReplyReceiver | None = None,
) -> None:
    """Submit a job for a request; the answer is sent when the model replies.

    Args:
        injected: headers added to the client's for the handler: `explain`, `url_path`.
        unnamed: the path, or the message, named no version.
        repeatable: body and content type suffice to repeat the request.
        infer: the head of a request in tensors, whose bytes are the parameters; None for any other.
        change: makes the answer from the whole reply, an error or not; pieces stay as they are.
        receiver: answers the exchange with the model's replies; None to send them as they are.

    Raises:
        NoReadyWorker: the version has no worker now or soon.
        Stopping: the version or the daemon is being stopped.
        QueueFull: the version's queue is at its limit.
        BadRequest: the deadline or the priority is invalid.
        ModelNotAllowed: the client's key does not allow the model.
        BodyTooLong: the client may not send so many bytes.
        TooManyRequests: the client's rate does not allow the request yet.
    """
    request = exchange.request
    try:
        budget, low = budget_of(request, model.settings.client_timeout), is_low(request)
        client = request.client
        if client is not None:
            client.admit(model.name, len(request.body), model.clock.now())
            low = low or client.low_priority
    except DaemonError as error:
        model.metrics.refused(error)
        raise
    kept = None
    if model.settings.record_input and repeatable and len(request.body) <= MOST_BYTES:
        kept = Param("body", request.content_type, request.body)  # not a copy: many requests may wait
    timing = Timing() if request.timed else None
    deliver: Callable[[Reply], None]
    stream: Callable[[Reply], None]
    if receiver is None:
        waiter = Waiter(exchange, model, kept, timing, change)
        deliver, stream = waiter.deliver, waiter.stream
    else:
        deliver, stream = receiver.deliver, receiver.stream
    unnamed = unnamed and request.model_version is None
    if model.mirror is not None and unnamed:
        asked = AskedOf(request.id, params, [*request.headers, *injected], infer)
        deliver, stream = model.mirror.watch(asked, Receivers(deliver, stream))
    job = Job(
        request.id, params, [*request.headers, *injected], request.received, deliver, stream,
        unnamed=unnamed, low_priority=low, budget=budget, caller=exchange.caller,
    )  # fmt: skip
    job.timing = timing
    job.infer = infer
    if model.sequences is not None:
        job.client = share_holder(client, request.peer)
    tracer = model.tracer
    if tracer is not None:
        draw = random()
        if draw < tracer.ratio or names_caller(request.headers):
            tracer.begin(job, request.method, request.target, request.began, draw)
    model.submit(job)
    request.body = b""  # the job owns the body now
    exchange.on_leave = partial(_leave, model, job)


class Waiter:
    """The exchange that waits for a prediction.

    A class, because compiled closures in `predict` would be reference cycles of twelve objects a request.

    Args:
        kept: the request, recorded if the answer is 200; None to record nothing.
        timing: the times of the answer, which the client asks for, or None. A streamed answer does not tell them: its
            head is sent before they are known.
        change: as in `predict`.
    """

    __slots__ = ("_change", "_exchange", "_kept", "_model", "_timing")

    def __init__(
        self,
        exchange: Exchange,
        model: ModelVersion,
        kept: Param | None,
        timing: Timing | None,
        change: Callable[[Reply], Reply] | None,
    ) -> None:
        self._exchange = exchange
        self._model = model
        self._kept = kept
        self._timing = timing
        self._change = change

    def deliver(self, reply: Reply) -> None:
        exchange = self._exchange
        if self._kept is not None and reply.status == 200 and not reply.error:
            self._model.record(Sample(bytes(self._kept.value), self._kept.content_type, RECORDED))
        if not exchange.started:
            if self._change is not None:
                reply = self._change(reply)
            response = reply_response(reply, exchange.request.target)
            if self._timing is not None:
                total = self._model.clock.now() - exchange.request.received
                response.headers = (*response.headers, ("Server-Timing", self._timing.header(total)))
            exchange.respond(response)
        elif reply.error:
            exchange.fail(PredictionFailed(reply.body.decode("utf-8", "replace")))
        else:
            exchange.send(reply.body)
            exchange.finish()

    def stream(self, piece: Reply) -> None:
        exchange = self._exchange
        if not isinstance(piece, Piece):
            flow = None
        elif piece.unread:
            exchange.fail(NotRead(piece.unread))
            return
        else:
            flow = piece.flow
        if not exchange.started:
            response = Response(piece.status, headers=piece.headers, phrase=piece.phrase)
            exchange.start(response, at_once=not piece.body)
        exchange.send(piece.body, flow)


def _leave(model: ModelVersion, job: Job, gone: bool) -> bool:
    """Handle a client that closed its side or disconnected; return whether the answer is still to come.

    A batch that runs is answered to a client that has closed its side; a row that runs on its own is cancelled, because
    that frees its place.
    """
    if gone or job.phase is JobPhase.QUEUED or model.by_rows:
        model.abandon(job)
        return False
    return True
