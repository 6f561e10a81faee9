"""A prediction for a gRPC call: submitted as HTTP's are, and its replies in order."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from random import random

from daemon.api.grpc.codes import Code, code_of_status
from daemon.api.grpc.heads import CallHead
from daemon.api.inference.predict import names_caller
from daemon.core.errors import DaemonError
from daemon.core.job import Job, JobPhase, Param, Piece, Reply
from daemon.http.bounds.sending import NotRead
from daemon.models.version import ModelVersion
from handlers.tensor_heads import InferHead


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


async def replies_to(
    model: ModelVersion, head: CallHead, params: Sequence[Param], infer: InferHead | None = None, *, unnamed: bool
) -> AsyncGenerator[Reply]:
    """Submit a job, and yield its answer: all of it, or piece by piece; `infer` as in `Job`.

    A caller that ends the iteration early, such as a cancelled call, takes its job out of the queue.

    Raises:
        DaemonError: the version does not accept the job, as `ModelVersion.submit`.
        CallFailed: the answer is an error.
    """
    arrived: asyncio.Queue[tuple[Reply, bool]] = asyncio.Queue()
    job = Job(
        head.id, params, list(head.headers), head.began,
        lambda reply: arrived.put_nowait((reply, True)), lambda piece: _take(arrived, piece),
        unnamed=unnamed, low_priority=head.low_priority, budget=head.budget(model.settings.client_timeout),
    )  # fmt: skip
    job.infer = infer
    tracer = model.tracer
    if tracer is not None:
        draw = random()
        if draw < tracer.ratio or names_caller(head.headers):
            tracer.begin(job, "POST", head.method, head.began, draw)
    model.submit(job)
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
            if reply.body or (last and not job.begun):
                yield reply
            if flow is not None and arrived.empty():
                flow.drained()  # the caller asks for the next piece when this one was written
    finally:
        if flow is not None:
            flow.refuse()
        if job.phase is not JobPhase.ENDED:
            model.abandon(job)


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
