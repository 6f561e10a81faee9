"""What a handler says of itself: `?customized=true` asks it, by a job of its own with the header `describe`.

TorchServe's rules (0.12): the handler's item, if it is a JSON object, is the metadata; an empty answer
is none; any other answer counts as an empty object.
"""

import asyncio
import json
from typing import Any

from daemon.errors import DescribeFailed, NoReadyWorker
from daemon.http.exchange import Exchange
from daemon.job import Job, Phase, Reply
from daemon.models.model import Model


async def customized_metadata(model: Model, exchange: Exchange) -> dict[str, Any] | None:
    """Ask a model's handler to describe itself; None if it has nothing to say.

    Raises:
        NoReadyWorker, QueueFull, Stopping: it cannot be asked.
        DescribeFailed: its worker failed or kept silent.
    """
    if not model.pool.ready:
        raise NoReadyWorker(
            f'Model "{model.name}" has no worker to serve describe request.'
            " Please use scale workers API to add workers."
        )
    answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def deliver(reply: Reply) -> None:
        if not answered.done():
            answered.set_result(reply)

    pieces: list[bytes] = []  # a handler may answer in pieces, whatever it is asked

    def leave(gone: bool) -> bool:
        if not gone and job.phase is not Phase.QUEUED:
            return True
        model.abandon(job)
        answered.cancel()
        return False

    request = exchange.request
    # Not the token: it opens the management API, which is no business of a handler's.
    headers = [*(pair for pair in request.headers if pair[0].lower() != "authorization"), ("describe", "True")]
    job = Job(request.id, [], headers, request.received, deliver, lambda piece: pieces.append(piece.body), solo=True)
    model.submit(job)
    exchange.on_leave = leave
    reply = await answered
    if reply.error:
        raise DescribeFailed(reply.body.decode("utf-8", "replace"))
    return metadata_of(b"".join([*pieces, reply.body]))


def metadata_of(body: bytes) -> dict[str, Any] | None:
    """Read a handler's answer."""
    if not body.strip():
        return None
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
