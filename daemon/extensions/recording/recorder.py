"""The recorder of one version: keeps the latest request that was answered with 200, while `recordInput` is set.

Bodies are kept only in memory, with their content type and no other header.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from tsctl.daemon.api.management.commands import FOUND, word_routes
from tsctl.daemon.api.openapi import answer, operation, path_parameters
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Job, Param, Reply
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response
from tsctl.daemon.http.router import Audience, Route
from tsctl.daemon.models.archives.sample import Sample, warmup_sample
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.daemon.models.version import ModelVersion

MOST_BYTES = 8 * 1024 * 1024  # a photograph; larger bodies are not recorded
RECORDED = "recorded"


class Recorder:
    """Watches the requests of a version while its settings ask for that."""

    def __init__(self, model: ModelVersion) -> None:
        self._model = model

    def watch(self, job: Job, asked: RequestFacts) -> bool:
        """Record a request when it is answered, if it can be repeated."""
        repeated = asked.repeated
        if repeated is not None and sum(len(each.value) for each in repeated) <= MOST_BYTES:
            job.watchers += (_Recording(self._model, repeated),)
        return False


class _Recording:
    """A request that is recorded if it is answered with 200, and recording is still asked for then."""

    def __init__(self, model: ModelVersion, repeated: Sequence[Param]) -> None:
        self._model = model
        self._repeated = repeated

    def piece(self, piece: Reply) -> None:
        """Wait for the end of the answer."""

    def ended(self, job: Job, reply: Reply | None) -> None:  # noqa: ARG002
        if reply is None or reply.status != 200 or reply.error or not self._model.settings.record_input:
            return
        sample = sample_of(self._repeated)
        if sample is not None:
            self._model.sample = sample

    def refused(self, job: Job, error: DaemonError) -> None:
        """Record nothing."""


def sample_of(params: Sequence[Param]) -> Sample | None:
    """Return the request that repeats these parameters: a body alone as it is, others as a form.

    Returns:
        None if there are no parameters, or the name of one cannot stand in a form.
    """
    if len(params) == 1 and params[0].name == "body":
        return Sample(bytes(params[0].value), params[0].content_type, RECORDED)
    if not params or not all(each.name.isprintable() and not set(each.name) & set('"\\') for each in params):
        return None
    boundary = uuid4().hex
    lines: list[bytes] = []
    for name, content_type, value in params:
        typed = f'; filename="{name}"\r\nContent-Type: {content_type}' if content_type else ""  # only files have types
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{typed}\r\n\r\n'
        lines += [head.encode(), bytes(value), b"\r\n"]
    body = b"".join([*lines, f"--{boundary}--\r\n".encode()])
    return Sample(body, f"multipart/form-data; boundary={boundary}", RECORDED)


class NoSample(DaemonError):
    """The model has neither a recorded request nor a `warmup` sample."""

    status = 404
    kind = "ResourceNotFoundException"

    def __init__(self, name: str, version: str, reason: str) -> None:
        super().__init__(
            f"No sample input for {name}/{version}: its archive has no `warmup` sample, and {reason}."
            f" Name a file, or record the next request with `tsctl set {name}/{version} --record-input`."
        )


OPERATIONS = {
    f"/tsctl/input/{path}": {
        "get": operation(
            f"input{suffix}", path_parameters(path),
            {"200": answer("The body of a sample request.", None, "*/*")}, FOUND,
        )
    }
    for suffix, path in (("Model", "{model_name}"), ("Version", "{model_name}/{model_version}"))
}  # fmt: skip


class RecordingService(Service):
    """`GET /tsctl/input/MODEL[/VERSION]`: the body of a sample request, unchanged, with its content type.

    The header `X-Tsctl-Input` is its source: `recorded` or `warmup`.

    The recorders of all versions, and the route that returns what they keep.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._registry, self._loading = kernel.registry, kernel.registrar.live.loading
        self._routes = word_routes({"input": self._find}, named=(1, 2))

    def follow(self, model: ModelVersion) -> None:
        found = [each for each in model.watchers if isinstance(each, Recorder)]
        if not model.settings.record_input:
            model.watchers = tuple(each for each in model.watchers if each not in found)
            model.sample = None
            return
        if not found:
            model.watchers = (Recorder(model), *model.watchers)  # first: the cache ends what it answers
        old = self._loading.get(model)
        if old is not None and old.source.manifest is model.source.manifest:  # built anew of the same files
            model.sample = old.sample

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        return self._routes if audience is Audience.OPERATORS else {}

    def _find(self, exchange: Exchange, *named: str) -> Any:
        return self._answer(exchange, self._registry.find(*named))  # an unknown model is told at once

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
