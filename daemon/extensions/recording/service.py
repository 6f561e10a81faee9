"""`GET /tsctl/input/MODEL[/VERSION]`: the body of a sample request, unchanged, with its content type.

The header `X-Tsctl-Input` is its source: `recorded` or `warmup`.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from tsctl.daemon.core.errors import DaemonError, MethodNotAllowed, ResourceNotFound
from tsctl.daemon.extension import Audience, Kernel, Service
from tsctl.daemon.extensions.recording.recorder import Recorder
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response
from tsctl.daemon.http.router import Route
from tsctl.daemon.models.archives.sample import warmup_sample
from tsctl.daemon.models.version import ModelVersion


class NoSample(DaemonError):
    """The model has neither a recorded request nor a `warmup` sample."""

    status = 404
    kind = "ResourceNotFoundException"

    def __init__(self, name: str, version: str, reason: str) -> None:
        super().__init__(
            f"No sample input for {name}/{version}: its archive has no `warmup` sample, and {reason}."
            f" Name a file, or record the next request with `tsctl set {name}/{version} --record-input`."
        )


class RecordingService(Service):
    """The recorders of all versions, and the route that returns what they keep."""

    def __init__(self, kernel: Kernel) -> None:
        self._registry = kernel.registry

    def attach(self, model: ModelVersion) -> None:
        Recorder(model)

    def replacing(self, old: ModelVersion, new: ModelVersion) -> None:
        if new.source.manifest is old.source.manifest and new.settings.record_input:  # built anew of the same files
            new.sample = old.sample

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        return {"tsctl": self._route} if audience is Audience.OPERATORS else {}

    def _route(self, exchange: Exchange, path: list[str]) -> Any:
        if path[:1] != ["input"] or len(path) not in (2, 3):
            raise ResourceNotFound  # at once: what else is below /tsctl has a route of its own
        if exchange.request.method != "GET":
            raise MethodNotAllowed
        return self._answer(exchange, self._registry.find(*path[1:]))

    async def _answer(self, exchange: Exchange, model: ModelVersion) -> None:
        sample = model.sample
        if sample is None:
            sample = await asyncio.to_thread(warmup_sample, model.source.directory, model.source.document)
        if sample is None:
            asked = model.settings.record_input
            reason = "no request has come that could be kept" if asked else "no request is kept"
            raise NoSample(model.name, model.version, reason)
        typed = [("Content-Type", sample.content_type)] if sample.content_type else []
        exchange.respond(Response(200, sample.body, (*typed, ("X-Tsctl-Input", sample.origin))))
