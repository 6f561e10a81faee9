"""`GET /tsctl/registrations`: the registration of each version, and for each model before its latest change.

versions   of each: name, version, default; url, handler (null for the archive's own); sha256 of the archive, null for
           one that is served in place; settings that were asked for, by their names and in their units of
           model-config.yaml; fallbackBatchSize; workers, `min` and `max`; state; ephemeral; rewritten, whether the
           archive's file has changed since the registration
routes     model → its route, by the names of its parameters
earlier    model → time, seconds since the epoch, its route (null without one), and its versions then, as above; see
           models/persistence/snapshot_file.py
"""

from functools import partial
from pathlib import Path
from typing import Any

from tsctl.daemon.api.management.commands import FOUND, word_routes
from tsctl.daemon.api.openapi import answer, listed, members, operation
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import json_response
from tsctl.daemon.http.router import Route as HttpRoute
from tsctl.daemon.models.archives.opening import DIGITS
from tsctl.daemon.models.archives.unpack import ArchiveMark, mark_of
from tsctl.daemon.models.persistence.ledger import Ledger
from tsctl.daemon.models.persistence.snapshot import SnapshotEntry
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.routing.route import Route, shown_route
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.tables import MODEL_SETTINGS

WORKERS = ("workers", "max_workers")
_REGISTRATIONS = members(
    {"versions": listed({"type": "object"}), "routes": {"type": "object"}, "earlier": {"type": "object"}}
)
_TEXT = "The registrations as they were asked for, and those of each model before its latest change."
OPERATIONS = {
    "/tsctl/registrations": {"get": operation("registrations", [], {"200": answer(_TEXT, _REGISTRATIONS)}, FOUND)}
}


def registrations_routes(registry: Registry, ledger: Ledger) -> dict[str, HttpRoute]:
    """Return the route of `/tsctl/registrations`; where several extensions have it, the first one answers."""
    return word_routes({"registrations": partial(_answer, registry, ledger)})


def _answer(registry: Registry, ledger: Ledger, exchange: Exchange) -> None:
    exchange.respond(json_response(registrations_document(registry, ledger)))


def registrations_document(registry: Registry, ledger: Ledger) -> dict[str, Any]:
    """Return the document; versions that are being restored have the state `restoring`."""
    return {
        "versions": [
            *(_registered(model, default=registry.is_default(model)) for model in registry),
            *(_remembered(entry, "restoring") for entry in ledger.pending),
        ],
        "routes": {name: shown_route(route) for name, route in registry.routes.by_model.items()},
        "earlier": {
            model.name: {
                "time": model.time,
                "route": _shown(model.route),
                "versions": [_remembered(entry, "") for entry in model.versions],
            }
            for model in ledger.memory.earlier
        },
    }


def _shown(route: Route | None) -> dict[str, Any] | None:
    return None if route is None else shown_route(route)


def _registered(model: ModelVersion, *, default: bool) -> dict[str, Any]:
    source = model.source
    return {
        "name": model.name,
        "version": model.version,
        "default": default,
        **_asked(model.request, None if source.unpacked is None else source.unpacked.name),
        "workers": {"min": model.presence.least, "max": model.presence.most},
        "state": model.word,
        "ephemeral": model.request.ephemeral,
        "rewritten": _is_rewritten(source.mark),
    }


def _remembered(entry: SnapshotEntry, state: str) -> dict[str, Any]:
    least = entry.request.overrides.workers
    most = entry.request.overrides.max_workers
    return {
        "name": entry.name,
        "version": entry.version,
        "default": entry.default,
        **_asked(entry.request, entry.unpacked),
        "workers": None if least is None else {"min": least, "max": max(least, most or 0)},
        "state": state,
        "ephemeral": entry.request.ephemeral,
        "rewritten": False,
    }


def _asked(request: Registration, unpacked: str | None) -> dict[str, Any]:
    said = request.overrides.said
    pinned = unpacked if unpacked is not None and len(unpacked) == DIGITS else request.sha256
    return {
        "fallbackBatchSize": said.get("fallback_batch_size", 0),
        "url": request.url,
        "handler": request.handler,
        "sha256": pinned or None,
        "settings": {
            row.yaml: row.written.show(said[row.name])
            for row in MODEL_SETTINGS
            if row.yaml and row.name in said and row.name not in WORKERS
        },
    }


def _is_rewritten(mark: ArchiveMark | None) -> bool:
    """Return whether the archive's file was written since; one that is gone was not."""
    now = None if mark is None else mark_of(Path(mark.file))
    return now is not None and now != mark
