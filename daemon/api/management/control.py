"""`GET /tsctl/…`: routes of the control socket that no TCP address has.

    /tsctl/status · config · store   the daemon; its settings; the archives of the model store, `name` and `bytes`
    /tsctl/worker/MODEL[/VERSION]    how the model is served: for programs that serve it beside the daemon
    /tsctl/upgrade                   with POST, see upgrade.py

The worker: `modelName`, `modelVersion`; `directory`, `handler`, `manifest`, `python` (null for the daemon's own),
`devices`; `gpuNames`, of all of the daemon's for CUDA; `workers`, the wanted number; `settings` by their names in
`model-config.yaml`, as the workers have them; `batching` as in the describe document; `anyWorker`, false if a request
belongs to the worker that keeps its client's state.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tsctl.daemon.api.management.batching import batching_of
from tsctl.daemon.api.management.describe import FieldsOf, no_fields, settings_of
from tsctl.daemon.core.errors import MethodNotAllowed, ResourceNotFound
from tsctl.daemon.core.texts.json_text import json_bytes
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import JSON, Response, json_response
from tsctl.daemon.http.router import Route
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion


def own_route(registry: Registry, own: Callable[[str], Any | None], fields: FieldsOf = no_fields) -> Route:
    """Return the route.

    Args:
        own: returns the document of a single word, None for an unknown word.
        fields: returns those of extensions, of a version's workers the settings that are other than its own.
    """

    async def route(exchange: Exchange, path: list[str]) -> None:
        if exchange.request.method != "GET":
            raise MethodNotAllowed
        match path:
            case ["worker", *named] if len(named) in (1, 2):
                model = registry.find(*named)
                exchange.respond(json_response(worker_of(model, fields(VersionView.WORKER, model))))
            case ["status"] if (document := own("status")) is not None:
                # Not `json_response`: with 500 models the json module takes 10 ms to indent their list, this 1 ms.
                text = msgspec.json.format(json_bytes(document), indent=2)
                exchange.respond(Response(200, text + b"\n", (JSON,)))
            case [word] if (document := own(word)) is not None:
                exchange.respond(json_response(document))
            case _:
                raise ResourceNotFound

    return route


def worker_of(model: ModelVersion, served: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts needed to serve the same model elsewhere.

    Args:
        served: settings of its workers that are other than its own.
    """
    source = model.source
    return {
        "modelName": model.name,
        "modelVersion": model.version,
        "directory": str(source.directory),
        "handler": source.manifest.handler,
        "manifest": source.manifest.raw,
        "python": None if source.python is None else str(source.python),
        "devices": list(model.settings.devices),
        "gpuNames": list(model.pool.spec.gpu_names),
        "workers": model.pool.wanted,
        "settings": settings_of(model) | dict(served),
        "batching": batching_of(model),
        "anyWorker": model.dispatcher.sends_batches,
    }
