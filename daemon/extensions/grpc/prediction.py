"""A prediction for a gRPC call: submitted as HTTP's are, and its replies in order."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import NamedTuple

from tsctl.daemon.api.submission import submit
from tsctl.daemon.core.arena import Take
from tsctl.daemon.core.errors import BadRequest, DaemonError
from tsctl.daemon.core.job import Flow, Job, JobPhase, Param, Piece, Reply
from tsctl.daemon.extensions.grpc.codes import Code, code_of_status
from tsctl.daemon.extensions.grpc.heads import CallHead
from tsctl.daemon.extensions.grpc.waiting.arrivals import Arrivals
from tsctl.daemon.extensions.grpc.waiting.held_calls import AwaitedModels
from tsctl.daemon.extensions.grpc.waiting.ordered_answers import StepTurns
from tsctl.daemon.http.bounds.sending import OVERHEAD, NotRead
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.tensor_heads import Head

MOST_KEPT = 16 * 1024 * 1024  # bytes of the pieces that are joined to one answer, as for OpenAI's API


class ServiceParts(NamedTuple):
    """The parts that the services of one server share.

    Attributes:
        started: every model to be served from the start is loaded or has failed.
        arrivals: of the server.
        take: returns a place in the arena for large inputs; None for no arena.
        turns: in which large requests are read.
    """

    registry: Registry
    started: Callable[[], bool]
    models: AwaitedModels
    arrivals: Arrivals
    take: Take | None
    turns: StepTurns


class CallFailed(Exception):
    """A call ends with a code other than OK.

    Attributes:
        status: of the same answer over HTTP.
        retry_after: seconds after which the client may try again, or None.
    """

    def __init__(self, code: Code, message: str, status: int, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.retry_after = retry_after


class _Ended:
    """The end of one job: its whole reply, and the pieces before it."""

    __slots__ = ("_loop", "_size", "flow", "future", "pieces", "refused")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Reply] = self._loop.create_future()
        self.pieces: list[Reply] = []
        self._size = 0
        self.flow: Flow | None = None
        self.refused = False

    def answer(self, reply: Reply) -> None:
        if not self.future.done():
            self.future.set_result(reply)

    def refuse(self, error: DaemonError) -> None:
        self.refused = True
        self.fail(error)

    def fail(self, error: DaemonError | CallFailed) -> None:
        if not self.future.done():
            self.future.set_exception(error)

    def piece(self, reply: Reply) -> None:
        self._size += len(reply.body) + OVERHEAD
        if self._size > MOST_KEPT:
            self._refuse_more(reply)
            return
        self.pieces.append(reply)
        try:
            check_reply(reply)
        except CallFailed as error:
            self.fail(error)
        if isinstance(reply, Piece):
            if reply.unread:
                self.fail(NotRead(reply.unread))
            elif reply.flow is not None:
                self.flow = reply.flow
                self.flow.wanted = True
                self._loop.call_soon(self.flow.drained)  # the worker counts the piece after this

    def _refuse_more(self, reply: Reply) -> None:
        """End the call: its pieces are more than a whole answer may have."""
        self.pieces.clear()
        if isinstance(reply, Piece) and reply.flow is not None:
            reply.flow.refuse()
        sentence = f"The answer has more than {MOST_KEPT} bytes in pieces: call the method that streams them."
        self.fail(CallFailed(Code.RESOURCE_EXHAUSTED, sentence, 501))


async def replies_at_end(
    arrivals: Arrivals,
    model: ModelVersion,
    head: CallHead,
    params: Sequence[Param],
    infer: Head | None = None,
    *,
    unnamed: bool,
    repeatable: bool = False,
) -> list[Reply]:
    """Return the answer to a job as a whole: one reply, or several if the handler answers in pieces.

    One future for all of it: a generator, as in `replies_to`, costs 60 µs more. A cancelled call takes its job out of
    the queue.

    Args:
        repeatable: the parameters suffice to repeat the request as a plain prediction: they may be recorded.

    Raises:
        DaemonError: the version does not accept the job, as `ModelVersion.submit`, or the client may not send it.
        CallFailed: the answer is an error.
    """
    end = _Ended()
    job = _submit(
        model, head, params, infer, end.answer, end.piece, unnamed=unnamed, repeatable=repeatable,
        later=lambda version, job: arrivals.submit(version, job, end.refuse),
    )  # fmt: skip
    try:
        reply = await end.future
    finally:
        if end.flow is not None:
            end.flow.refuse()
        if job.phase is not JobPhase.ENDED and not end.refused:
            arrivals.abandon(model, job)
    check_reply(reply)
    if not job.begun:
        return [reply]
    return [each for each in (*end.pieces, reply) if each.body]


async def replies_to(
    model: ModelVersion,
    head: CallHead,
    params: Sequence[Param],
    infer: Head | None = None,
    *,
    unnamed: bool,
    repeatable: bool = False,
    with_end: bool = False,
) -> AsyncGenerator[Reply]:
    """Submit a job, and yield its answer: all of it, or piece by piece; `infer` as in `Job`, `repeatable` as in
    `replies_at_end`.

    Args:
        with_end: yield the last reply even if it is empty, after pieces.

    A caller that ends the iteration early, such as a cancelled call, takes its job out of the queue.

    Raises:
        DaemonError: the version does not accept the job, as `ModelVersion.submit`, or the client may not send it.
        CallFailed: the answer is an error.
    """
    arrived: asyncio.Queue[tuple[Reply, bool]] = asyncio.Queue()
    job = _submit(
        model, head, params, infer, lambda reply: arrived.put_nowait((reply, True)),
        lambda piece: _take(arrived, piece), unnamed=unnamed, repeatable=repeatable,
    )  # fmt: skip
    flow = None
    try:
        last = False
        while not last:
            reply, last = await arrived.get()
            if isinstance(reply, Piece):
                if reply.unread:
                    raise NotRead(reply.unread)
                flow = reply.flow
            check_reply(reply)
            if reply.body or (last and (with_end or not job.begun)):
                yield reply
            if flow is not None and arrived.empty():
                flow.drained()  # the caller asks for the next piece when this one was written
    finally:
        if flow is not None:
            flow.refuse()
        if job.phase is not JobPhase.ENDED:
            model.abandon(job)


def _submit(
    model: ModelVersion, head: CallHead, params: Sequence[Param], infer: Head | None,
    deliver: Callable[[Reply], None], stream: Callable[[Reply], None],
    *, unnamed: bool, repeatable: bool, later: Callable[[ModelVersion, Job], None] | None = None,
) -> Job:  # fmt: skip
    if head.invalid:
        error = BadRequest(head.invalid)
        model.metrics.refused(error)
        raise error
    return submit(
        model, head.id, params, list(head.headers), head.received, deliver, stream,
        unnamed=unnamed and head.model_version is None, low_priority=head.low_priority,
        budget=head.budget(model.settings.client_timeout), client=head.client, peer=head.peer,
        size=sum(len(each.value) for each in params), method="POST", target=head.method, began=head.began,
        infer=infer, kept=params if repeatable else None, later=later,
    )  # fmt: skip


def _take(arrived: asyncio.Queue[tuple[Reply, bool]], piece: Reply) -> None:
    if isinstance(piece, Piece) and piece.flow is not None:
        piece.flow.wanted = True
    arrived.put_nowait((piece, False))


def check_reply(reply: Reply) -> None:
    """Raise the error that a reply is.

    Raises:
        CallFailed: the reply is an error, or the handler chose a status from 400 on.
    """
    if not reply.error and 200 <= reply.status < 400:
        return
    message = reply.body.decode("utf-8", "replace")
    if reply.error:
        # Only what the queue refuses is worth another try: clients repeat UNAVAILABLE, and the handler's failure is
        # 503 over HTTP, too.
        failed = reply.error == DaemonError.kind
        raise CallFailed(
            Code.INTERNAL if failed else code_of_status(reply.status), message, reply.status, reply.retry_after
        )
    raise CallFailed(code_of_status(reply.status), message, reply.status)
