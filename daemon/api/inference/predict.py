"""Conversion of an HTTP request to a job, and of the job's replies to an answer: whole, or streamed."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from tsctl.daemon.api.inference.forms import Form, read_body
from tsctl.daemon.api.inference.raw_forms import RawForm, is_urlencoded, read_raw_form
from tsctl.daemon.api.submission import budget_of, is_low, submit
from tsctl.daemon.core.errors import AnswersInPieces, BadRequest, DaemonError, PredictionFailed
from tsctl.daemon.core.job import Job, JobPhase, Param, Piece, Reply, TimeBudget
from tsctl.daemon.core.timing import Timing
from tsctl.daemon.http.bounds.sending import NotRead
from tsctl.daemon.http.deadline_header import HEADER, read_budget
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Request, Response, check_query, reply_response
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.tensor_heads import Head
from tsctl.handlers.wire import INSTANCES, Declared


def parameters_of(request: Request, declared: Declared | None = None) -> list[Param] | Form | RawForm:
    """Return the parameters of a request's body, or the unfinished form if its first slice was not all of the body.

    Args:
        declared: the inputs of the model, of which a urlencoded body may be one; None for a handler that declares none.

    Raises:
        BadRequest: the form is malformed or exceeds a limit.
    """
    kind = request.kind
    if declared is not None and is_urlencoded(request.content_type) and declared.inputs:
        read = read_raw_form(request.body, declared)
        if read is not None:
            return read
    return read_body(request.content_type if kind is None else kind, request.body)


def as_instances(params: list[Param], declared: Declared | None) -> list[Param]:
    """Return the parameters of a request of KServe's first protocol: a typed handler gets its `instances` one by one.

    Returns:
        `params` itself for other handlers, one that has a parameter of this name, and a body that is no JSON object.
    """
    if declared is None or declared.built_in or any(each.name == "instances" for each in declared.inputs):
        return params
    body = next((each for each in params if each.name == "body"), None)
    if body is None or not _beginning(body).lstrip().startswith(b"{"):
        return params
    return [each._replace(name=INSTANCES) if each is body else each for each in params]


def check_names(params: Sequence[Param], declared: Declared | None) -> None:
    """Check that no part of a form would be lost.

    A typed handler finds all parts of a name, and refuses what it does not take. For other handlers the last counts, as
    in TorchServe; so it does for fields, which forms of web pages repeat, but no file and no input is dropped.

    Raises:
        BadRequest: a file, or the input of a built-in handler, has the name of another part.
    """
    if declared is not None and not declared.built_in:
        return
    seen: set[str] = set()
    for param in params:
        if param.name in seen and (declared is not None or _is_file(param.name, params)):
            count = len([each for each in params if each.name == param.name])
            raise BadRequest(
                f"The form has {count} parts named `{param.name[:100]}`, and the handler takes one part of a name. Send"
                " each in a request of its own, or under a name of its own."
            )
        seen.add(param.name)


def _is_file(name: str, params: Sequence[Param]) -> bool:
    return any(param.content_type for param in params if param.name == name)  # fields have no type


def with_inputs(
    request: Request, params: list[Param], declared: Declared | None, beside: Sequence[str] = ()
) -> list[Param]:
    """Return the parameters of a body, and those of the query that a typed handler declares, as fields of a form.

    Args:
        beside: names of the query that are the route's own.

    Returns:
        `params` itself, if the query has none.

    Raises:
        BadRequest: the form has a part of the name of one, or the query has too many, or another name.
    """
    if declared is None or declared.built_in or "?" not in request.target:
        return params
    names = [each.name for each in declared.inputs]
    check_query(request, [*names, *beside], "the handler")
    asked = [Param(name, "", text.encode()) for name, text in request.query_pairs if name in names]
    if not asked:
        return params
    if len(params) == 1 and not len(params[0].value) and params[0].name == "body":
        return asked  # there is no body
    for each in asked:
        for param in params:
            if param.name == each.name and (param.name != "body" or len(params) > 1):
                both = f"in the query ({_shown(each)}) and in the form ({_shown(param)})"
                raise BadRequest(f"`{each.name}` is {both}. Send one of the two.")
    return params + asked


def _shown(param: Param) -> str:
    return f"`{ascii(_beginning(param).decode('utf-8', 'replace'))[1:-1]}`"


def _beginning(param: Param) -> bytes:
    return bytes((param.value if isinstance(param.value, bytes) else param.value.view)[:_SHOWN])


def with_query(request: Request, params: list[Param]) -> list[Param]:
    """Return the parameters of a body, then those of the query with other names, as bytes.

    Raises:
        BadRequest: the query has too many parameters.
    """
    named = {param.name for param in params}
    return params + [Param(name, "", text.encode()) for name, text in request.query.items() if name not in named]


def read_time(request: Request, most: float) -> TimeBudget | None:
    """Return the time that a request may take, counted from the end of its headers; None without a limit.

    Args:
        most: the model's limit in seconds, 0.0 for none; caps the client's deadline.

    Raises:
        BadRequest: the client's deadline is invalid.
    """
    if request.budget is None and not most:
        return None
    asked = None if request.budget is None else read_budget(request.budget)
    return budget_of(asked, most, request.began, HEADER)


_SHOWN: Final = 50  # bytes of a value in an error


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
    whole: bool = False,
) -> None:
    """Submit a job for a request; the answer is sent when the model replies.

    Args:
        injected: headers added to the client's for the handler: `explain`, `url_path`.
        unnamed: the path, or the message, named no version.
        repeatable: body and content type suffice to repeat the request.
        infer: the head of a request in tensors, whose bytes are the parameters; None for any other.
        change: makes the answer from the whole reply, an error or not; pieces stay as they are.
        receiver: answers the exchange with the model's replies; None to send them as they are.
        whole: the protocol has no answers in pieces: a model that gives one is told about.

    Raises:
        AnswersInPieces: `whole`, and the handler is a generator.
        NoReadyWorker: the version has no worker now or soon.
        Stopping: the version or the daemon is being stopped.
        QueueFull: the version's queue is at its limit.
        BadRequest: the deadline or the priority is invalid, or a part of the form would be lost.
        ModelNotAllowed: the client may not use the model.
        BodyTooLong: the client may not send so many bytes.
        TooManyRequests: the client's rate does not allow the request yet.
    """
    request = exchange.request
    try:
        if infer is None and len(params) > 1:
            check_names(params, model.declared)
        if whole and model.declared is not None and model.declared.streams:
            raise AnswersInPieces(model.name)
        budget, low = read_time(request, model.settings.client_timeout), is_low(request.priority)
    except DaemonError as error:
        model.metrics.refused(error)
        raise
    body = request.body
    kept = [Param("body", request.content_type, body)] if repeatable and model.watchers else None
    timing = Timing() if request.timed else None
    deliver: Callable[[Reply], None]
    stream: Callable[[Reply], None]
    if receiver is None:
        waiter = Waiter(exchange, model, timing, change, whole)
        deliver, stream = waiter.deliver, waiter.stream
    else:
        deliver, stream = receiver.deliver, receiver.stream
    job = submit(
        model, request.id, params, [*request.headers, *injected], request.received, deliver, stream,
        unnamed=unnamed and request.model_version is None, low_priority=low, budget=budget, client=request.client,
        peer=request.peer, size=len(body), method=request.method, target=request.target, began=request.began,
        infer=infer, kept=kept, timing=timing, caller=exchange.caller,
    )  # fmt: skip
    request.body = b""  # the job owns the body now
    exchange.on_leave = Leave(model, job)


class Waiter:
    """The exchange that waits for a prediction.

    A class, because compiled closures in `predict` would be reference cycles of twelve objects a request.

    Args:
        timing: the times of the answer, which the client asks for, or None. A streamed answer does not tell them: its
            head is sent before they are known.
        change, whole: as in `predict`.
    """

    __slots__ = ("_change", "_exchange", "_model", "_timing", "_whole")

    def __init__(
        self,
        exchange: Exchange,
        model: ModelVersion,
        timing: Timing | None,
        change: Callable[[Reply], Reply] | None,
        whole: bool,
    ) -> None:
        self._exchange = exchange
        self._model = model
        self._timing = timing
        self._change = change
        self._whole = whole

    def deliver(self, reply: Reply) -> None:
        exchange = self._exchange
        if exchange.done:
            return  # a piece was refused
        if not exchange.started:
            if self._change is not None:
                reply = self._change(reply)
            response = reply_response(reply, exchange.request.target)
            if self._timing is not None:
                total = self._model.clock.now() - exchange.request.received
                response.headers = (*response.headers, ("Server-Timing", self._timing.header(total)))
            exchange.respond(response)
        elif reply.error or reply.status >= 400:  # of a handler that chose it after its first pieces
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
        if self._whole:
            if flow is not None:
                flow.refuse()
            if not exchange.done:
                exchange.fail(AnswersInPieces(self._model.name))
            return
        if exchange.started and piece.status >= 400:
            if flow is not None:
                flow.refuse()
            exchange.fail(PredictionFailed(piece.body.decode("utf-8", "replace")))
            return
        if not exchange.started:
            response = Response(piece.status, headers=piece.headers, phrase=piece.phrase)
            exchange.start(response, at_once=not piece.body)
        exchange.send(piece.body, flow)


class Leave:
    """Handles a client that closed its side or disconnected; returns whether the answer is still to come.

    A batch that runs is answered to a client that has closed its side; a row that runs on its own is cancelled, because
    that frees its place. A class, because it is compiled; a `partial` is made by calls of objects.
    """

    __slots__ = ("_job", "_model")

    def __init__(self, model: ModelVersion, job: Job) -> None:
        self._model = model
        self._job = job

    def __call__(self, gone: bool) -> bool:
        if gone or self._job.phase is JobPhase.QUEUED or self._model.by_rows:
            self._model.abandon(self._job)
            return False
        return True
