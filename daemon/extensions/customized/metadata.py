"""Metadata from the handler itself: `?customized=true` runs a job of its own with the header `describe`.

TorchServe's rules (0.12): a JSON object is the metadata; an empty answer is no metadata; any other
answer counts as an empty object.
"""

import asyncio
import json
from collections.abc import Coroutine, Mapping
from typing import Any

from tsctl.daemon.api.management.commands import Parameters, awaited
from tsctl.daemon.api.management.describe import describe
from tsctl.daemon.api.management.openapi import describing
from tsctl.daemon.api.openapi import BOOLEAN
from tsctl.daemon.core.errors import DaemonError, NoReadyWorker, ResourceNotFound
from tsctl.daemon.core.job import Job, JobPhase, Reply
from tsctl.daemon.extension import Service
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import json_response
from tsctl.daemon.http.router import Audience, Route
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.server.fields import Fields

OPERATIONS = describing({"customized": BOOLEAN}, {"customizedMetadata": {"type": "object"}})


class DescribeFailed(DaemonError):
    """The handler did not describe itself."""

    def __init__(self, reason: str) -> None:
        # The misspelt word is TorchServe's, and clients may look for the sentence.
        super().__init__(f"Failed to get customized model matadata. {reason}")


class CustomizedService(Service):
    """The route of one daemon; the core answers a description without the handler's metadata, and of all versions."""

    def __init__(self, registry: Registry, fields: Fields) -> None:
        self._registry, self._fields = registry, fields

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        return {"models/*": self._route} if audience is Audience.MANAGERS else {}

    def _route(self, exchange: Exchange, path: list[str]) -> Coroutine[Any, Any, None]:
        asks_one = exchange.request.method == "GET" and len(path) < 3 and path[1:] != ["all"]
        if not asks_one or not Parameters(exchange.request).flag("customized", False):
            raise ResourceNotFound
        return self._answer(exchange, *path)

    async def _answer(self, exchange: Exchange, name: str, version: str | None = None) -> None:
        await awaited(self._registry, name, version)
        model = self._registry.find(name, version)
        metadata = await customized_metadata(model, exchange)
        document = describe(model, self._fields.of, self._registry)
        if metadata is not None:
            ours = document.pop("tsctl")  # the last member
            document |= {"customizedMetadata": metadata, "tsctl": ours}
        exchange.respond(json_response([document]))


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
