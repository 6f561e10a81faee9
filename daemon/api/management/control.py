"""`GET /tsctl/…`: routes of the control socket that no TCP address has.

    /tsctl/status · config · store   the daemon; its settings; the archives of the model store, `name` and `bytes`
    /tsctl/registrations             what was asked for each version, now and before, see registrations/document.py
    /tsctl/worker/MODEL[/VERSION]    how the model is served: for `tsctl tune` and `optimize`
    /tsctl/upgrade                   with POST, see upgrade.py

The worker: `modelName`, `modelVersion`; `directory`, `handler`, `manifest`, `python` (null for the daemon's own),
`devices`, `optimize`; `workers`, the wanted number; `settings` by their names in `model-config.yaml`; `batching` as in
the describe document.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from tsctl.daemon.api.management.batching import batching_of
from tsctl.daemon.api.management.describe import settings_of
from tsctl.daemon.core.errors import MethodNotAllowed, ResourceNotFound
from tsctl.daemon.core.texts.json_text import json_bytes
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import JSON, Response, json_response
from tsctl.daemon.http.router import Route
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion


def own_route(registry: Registry, own: Callable[[str], Any | None]) -> Route:
    """Return the route.

    Args:
        own: returns the document of a single word, None for an unknown word.
    """

    async def route(exchange: Exchange, path: list[str]) -> None:
        if exchange.request.method != "GET":
            raise MethodNotAllowed
        match path:
            case ["worker", *named] if len(named) in (1, 2):
                exchange.respond(json_response(worker_of(registry.find(*named))))
            case ["status"] if (document := own("status")) is not None:
                # Not `json_response`: with 500 models the json module takes 10 ms to indent their list, this 1 ms.
                text = msgspec.json.format(json_bytes(document), indent=2)
                exchange.respond(Response(200, text + b"\n", (JSON,)))
            case [word] if (document := own(word)) is not None:
                exchange.respond(json_response(document))
            case _:
                raise ResourceNotFound

    return route


def worker_of(model: ModelVersion) -> dict[str, Any]:
    """Return the facts needed to serve the same model elsewhere."""
    source = model.source
    return {
        "modelName": model.name,
        "modelVersion": model.version,
        "directory": str(source.directory),
        "handler": source.manifest.handler,
        "manifest": source.manifest.raw,
        "python": None if source.python is None else str(source.python),
        "devices": list(model.settings.devices),
        "optimize": _optimize(model),
        "workers": model.pool.wanted,
        "settings": settings_of(model),
        "batching": batching_of(model),
    }


def _optimize(model: ModelVersion) -> list[str] | None:
    """Return the optimisations that its workers have by name: of the settings, or as a trial has chosen."""
    names = model.settings.optimize if model.auto is None else model.auto.chosen or None
    return None if names is None else list(names)
