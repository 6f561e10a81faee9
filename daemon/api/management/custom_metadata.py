"""Metadata from the handler itself: `?customized=true` runs a job of its own with the header `describe`.

TorchServe's rules (0.12): a JSON object is the metadata; an empty answer is no metadata; any other
answer counts as an empty object.
"""

import asyncio
import json
from typing import Any

from tsctl.daemon.core.errors import DescribeFailed, NoReadyWorker
from tsctl.daemon.core.job import Job, JobPhase, Reply
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.models.version import ModelVersion


async def customized_metadata(model: ModelVersion, exchange: Exchange) -> dict[str, Any] | None:
    """Return the metadata that a model's handler reports; None if the handler's answer is empty.

    Raises:
        NoReadyWorker: no worker is ready.
        QueueFull: the version's queue is at its limit.
        Stopping: the version or the daemon is being stopped.
        DescribeFailed: the worker failed or did not answer.
    """
    if not model.pool.ready and not model.presence.comes:
        raise NoReadyWorker(
            f'Model "{model.name}" has no worker to serve describe request.'
            " Please use scale workers API to add workers."
        )
    answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def deliver(reply: Reply) -> None:
        if not answered.done():
            answered.set_result(reply)

    pieces: list[bytes] = []  # handlers may stream any answer

    def leave(gone: bool) -> bool:
        if not gone and job.phase is not JobPhase.QUEUED:
            return True
        model.abandon(job)
        answered.cancel()
        return False

    request = exchange.request
    # Without the token: handlers must not see the key to the management API.
    headers = [*(pair for pair in request.headers if pair[0].lower() != "authorization"), ("describe", "True")]
    job = Job(
        request.id, [], headers, request.received, deliver, lambda piece: pieces.append(piece.body), exclusive=True
    )
    model.submit(job)
    exchange.on_leave = leave
    reply = await answered
    if reply.error:
        raise DescribeFailed(reply.body.decode("utf-8", "replace"))
    return metadata_of(b"".join([*pieces, reply.body]))


def metadata_of(body: bytes) -> dict[str, Any] | None:
    """Parse a handler's answer; return None if the answer is empty, {} if the answer is no JSON object."""
    if not body.strip():
        return None
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
