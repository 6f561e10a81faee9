"""The routes of the control socket and the management address: TorchServe's management API, and a few of our own.

    POST   /models?url=…                register; with &replace=true replace a serving version, and keep its settings,
                                        or with &reset=true begin with the request alone
    GET    /models                      list default versions
    GET    /models/MODEL[/VERSION|/all] describe
    PUT    /models/MODEL[/VERSION]      scale
    PATCH  /models/MODEL[/VERSION]      change settings, see patch.py
    PUT    /models/MODEL/VERSION/set-default
    POST   /models/MODEL/VERSION/retry  retry a failed version
    POST   /models/MODEL/VERSION/load   load a version now; with …/unload unload it, and keep it so; with …/restart
                                        replace its workers by new ones, without a failed request
    DELETE /models/MODEL[/VERSION]      unregister; with ?owner=… only if that owner registered the serving version
    GET    /v1/models/MODEL             KServe's readiness of a model
    OPTIONS / and /models/…, any /api-description    an OpenAPI description
    GET    /tsctl/…                     only on the control socket, see control.py

Commands with the same token in the header `X-Tsctl-Change` are one change (persistence/snapshot_file.py).
Extensions add routes below
`/models` (daemon/extensions/). Registering and scaling report their progress, see progress.py. While the daemon is
being upgraded, changes are rejected: 503 with `Retry-After`.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from tsctl.daemon.api.inference.routes import refuse_workflows, tell_readiness
from tsctl.daemon.api.management.commands import LATER, Command, Parameters, awaited, changing, run
from tsctl.daemon.api.management.control import own_route
from tsctl.daemon.api.management.describe import FieldsOf, describe, no_fields, notes_of, settings_of, shown_settings
from tsctl.daemon.api.management.loading import ACTIONS, loading_command
from tsctl.daemon.api.management.openapi import REGISTERING, describe_management
from tsctl.daemon.api.management.patch import asked_of, change
from tsctl.daemon.core.errors import BadRequest, MethodNotAllowed, RegistrationOff, ResourceNotFound, TokensNotMade
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import json_response, status_response
from tsctl.daemon.http.router import Route
from tsctl.daemon.model_settings.kinds import MOST, Boolean, Integer
from tsctl.daemon.models.archives.manifest import sha256_pin
from tsctl.daemon.models.registering.ownership import check_owner_token
from tsctl.daemon.models.registering.spec import mode_of, places_of
from tsctl.daemon.models.registrar import Progress, Registrar, Registration
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.settings import ROWS, Overrides
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.tables import MODEL_SETTINGS

PAGE = 100
# The parameters of commands; `timeout` and `number_gpu` are TorchServe's, which it does not obey either.
_SCALING = ("min_worker", "max_worker", "model_version", "synchronous", "timeout", "number_gpu", "warnings")
_UNREGISTERING = ("owner", "synchronous", "timeout")
# With 206: the workers asked for were ready, but another client has scaled since, or a worker has just exited.
_IN_PROGRESS = "Workers scaling in progress..."


def management_routes(
    registry: Registry,
    registrar: Registrar,
    own: Callable[[str], Any | None] | None,
    *,
    local_paths: bool,
    registers: bool = True,
    fields: FieldsOf = no_fields,
) -> dict[str, Route]:
    """Return the routes.

    Args:
        own: returns the document of `/tsctl/WORD`, None for an unknown word; without `own` there is no route
            `/tsctl`.
        local_paths: whether archives outside the model store may be registered here.
        registers: whether models may be registered and unregistered here.
        fields: returns those of extensions.
    """

    async def models(exchange: Exchange, path: list[str]) -> None:
        if path and exchange.request.method != "OPTIONS":
            await awaited(registry, path[0], path[1] if path[1:] and path[1] != "all" else None)
        with changing(registrar, exchange.request):
            await answer(exchange, path)

    async def answer(exchange: Exchange, path: list[str]) -> None:
        method = exchange.request.method
        if not registers and ((method == "POST" and not path) or method == "DELETE"):
            raise RegistrationOff
        if method == "POST" and not path:
            await run(exchange, _register(registry, registrar, exchange, local_paths))
        elif method == "GET" and not path:
            exchange.respond(json_response(_list(registry, Parameters(exchange.request))))
        elif method == "GET" and len(path) in (1, 2):
            exchange.respond(json_response([describe(model, fields, registry) for model in _named(registry, *path)]))
        elif method == "OPTIONS" and len(path) in (0, 1, 2):
            exchange.respond(json_response(describe_management(own=own is not None)))
        elif method == "PUT" and len(path) == 3 and path[2] == "set-default":
            await registrar.set_default(path[0], path[1])
            sentence = f'Default version successfully updated for model "{path[0]}" to "{path[1]}"'
            exchange.respond(status_response(sentence))
        elif method == "POST" and len(path) == 3 and path[2] in ACTIONS:
            await run(exchange, loading_command(registry.find(path[0], path[1]), registrar, exchange, path[2]))
        elif method == "PUT" and len(path) in (1, 2):
            await run(exchange, _scale(registry, registrar, exchange, *path))
        elif method == "PATCH" and len(path) in (1, 2):
            model = registry.find(*path)
            document = change(model, asked_of(Parameters(exchange.request)))
            await registrar.ledger.remember(model)
            exchange.respond(json_response(document))
        elif method == "DELETE" and len(path) in (1, 2):
            given = Parameters(exchange.request)
            given.check_names(_UNREGISTERING, ())
            owner = given.text("owner") or ""
            model = await registrar.unregister(path[0], path[1] if path[1:] else None, owner)
            exchange.respond(status_response(f'Model "{model.name}" unregistered'))
        else:
            raise MethodNotAllowed if len(path) < 3 else ResourceNotFound

    def root(exchange: Exchange, path: list[str]) -> None:  # noqa: ARG001 - one signature for all
        if exchange.request.method != "OPTIONS":
            raise MethodNotAllowed
        exchange.respond(json_response(describe_management(own=own is not None)))

    def api_description(exchange: Exchange, path: list[str]) -> None:
        if path:
            raise ResourceNotFound
        exchange.respond(json_response(describe_management(own=own is not None)))

    found: dict[str, Route] = {
        "models": models,
        "v1": partial(tell_readiness, registry),
        "api-description": api_description,
        "workflows": refuse_workflows,
        "token": refuse_tokens,
        "": root,
    }
    return found if own is None else found | {"tsctl": own_route(registry, own, fields)}


def refuse_tokens(exchange: Exchange, path: list[str]) -> None:  # noqa: ARG001
    raise TokensNotMade


def _named(registry: Registry, name: str, version: str | None = None) -> list[ModelVersion]:
    if version == "all":
        return sorted(registry.versions(name), key=lambda each: order_of(each.version))
    return [registry.find(name, version)]


def order_of(version: str) -> list[tuple[int, str]]:
    """Return the place of a version among others: 1.0, 1.1, 2.0, 10.0, as TorchServe lists versions of one length.

    Numbers are compared by their length and digits: a version may have more digits than `int` reads.
    """
    parts = re.split(r"[.+_-]", version)
    return [(1 + len(part.lstrip("0")), part.lstrip("0")) if part.isdecimal() else (0, part) for part in parts]


def _register(registry: Registry, registrar: Registrar, exchange: Exchange, local_paths: bool) -> Command:
    given = Parameters(exchange.request)
    given.check_names(REGISTERING, MODEL_SETTINGS)
    url = given.text("url", empty=True)
    if url is None:
        raise BadRequest("Parameter url is required.")
    warnings = given.flag("warnings", False)
    runtime = given.text("runtime")
    if runtime not in (None, "python", "python3"):
        raise BadRequest(f"Invalid RuntimeType value: {runtime}")
    if given.flag("s3_sse_kms", False):
        raise BadRequest("s3_sse_kms is true, but requests to S3 are not signed: use a presigned URL.")
    replace, reset = bool(given.read("replace", Boolean())), bool(given.read("reset", Boolean()))
    if reset and not replace:
        raise BadRequest("reset is true, but only a replacement has settings to reset: add replace=true.")
    owner = given.text("owner") or ""
    if owner:
        check_owner_token(owner)
    owner_pid = given.read("owner_pid", Integer(1)) or 0
    if owner_pid and not (owner and local_paths):
        raise BadRequest("owner_pid needs an owner, and works on the control socket only.")
    request = Registration(
        url=url,
        model_name=given.text("model_name"),
        model_version=given.text("model_version"),
        sha256=sha256_pin(given.text("sha256", empty=True)),
        handler=given.text("handler"),
        runtime=runtime,
        overrides=Overrides(
            **{row.name: given.read(row.rest, row.kind, absent=True) for row in MODEL_SETTINGS if row.rest}
        ),
        synchronous=given.flag("synchronous", True),
        local_paths=local_paths,
        ephemeral=bool(given.read("ephemeral", Boolean())),
        owner=owner,
        owner_pid=owner_pid,
    )

    async def command(progress: Progress) -> tuple[int, Any]:
        model = await registrar.register(request, progress, replace=replace, reset=reset)
        status, document = outcome(model)
        return status, document | registered(model) if warnings else document

    def outcome(model: ModelVersion) -> tuple[int, dict[str, Any]]:
        workers = model.pool.wanted
        if workers and not request.synchronous:
            return LATER
        if model.pool.ready < workers:
            return 206, {"status": _IN_PROGRESS}
        done = "replaced" if model.took_over else "registered"
        sentence = f'Model "{model.name}" Version: {model.version} {done} with {workers} initial workers'
        if not workers and model.presence.comes:
            sentence = f'Model "{model.name}" Version: {model.version} {done}; the first request loads it'
        elif not workers:
            sentence += ". Use scale workers API to add workers for the model."
        return 200, _done(model, sentence, registry if warnings else None)

    return command


def _scale(
    registry: Registry, registrar: Registrar, exchange: Exchange, name: str, version: str | None = None
) -> Command:
    given = Parameters(exchange.request)
    given.check_names(_SCALING, ())
    least = given.read("min_worker", Integer())
    least = 1 if least is None else least
    most = given.read("max_worker", Integer())
    most = least if most is None else most
    if most < least:
        raise BadRequest("max_worker cannot be less than min_worker.")
    version = version or given.text("model_version")
    model = registry.find(name, version)
    synchronous, warnings = given.flag("synchronous", False), given.flag("warnings", False)

    async def command(progress: Progress) -> tuple[int, Any]:
        await registrar.scale(model, least, most, synchronous=synchronous, progress=progress)
        if not synchronous:
            return LATER
        if model.pool.ready < model.pool.wanted:
            return 206, {"status": _IN_PROGRESS}
        suffix = f", version: {version}" if version else ""
        return 200, _done(
            model, f"Workers scaled to {model.pool.wanted} for model: {name}{suffix}", registry if warnings else None
        )

    return command


def _done(model: ModelVersion, sentence: str, registry: Registry | None) -> dict[str, Any]:
    """Return TorchServe's sentence; with a registry, also a warning about too many threads, if any."""
    warning = None if registry is None else model.pool.crowded_with(each.pool for each in registry)
    return {"status": sentence} if warning is None else {"status": sentence, "warning": warning}


def _list(registry: Registry, given: Parameters) -> dict[str, Any]:
    limit = given.read("limit", Integer(-MOST))
    limit = PAGE if limit is None or not 0 <= limit <= PAGE else limit
    start = max(0, given.read("next_page_token", Integer(-MOST)) or 0)
    models: list[ModelVersion] = registry.defaults()
    document: dict[str, Any] = {}
    if start + limit <= len(models):  # TorchServe sends a token even if the page ends at the last model
        document["nextPageToken"] = str(start + limit)
    page = models[start : start + limit]
    document["models"] = [{"modelName": model.name, "modelUrl": model.source.url} for model in page]
    return document


def registered(model: ModelVersion) -> dict[str, Any]:
    """Return the document that ends a registration with `warnings=true`, beside TorchServe's sentence.

        modelName, modelVersion, handler
        batchSize, maxBatchDelay, batching   in force now; milliseconds
        mode, places                         as in the description: how requests are sent to a worker
        notes                                sentences for the author, the worker's and those on model-config.yaml
        replaced                             whether the registration replaces a version that was registered
        changed                              the settings that a replacement changed: setting, before, after
        kept                                 the settings that a replacement kept, because they were asked for earlier
        mostRows                             that the model's file takes at a time; 0 for any number
        alone                                whether the handler's function is called for one request after the other
        inTensors                            whether requests are tensors (`inputs`) for a handler without type hints
        workers, onDemand                    its worker processes; whether the first request starts them

    Settings have their names and units of model-config.yaml.
    """
    before, settings, takes = model.before, model.settings, model.declared
    return {
        "modelName": model.name,
        "modelVersion": model.version,
        "handler": model.source.manifest.handler,
        "batchSize": settings.batch_size,
        "maxBatchDelay": round(settings.max_delay * 1000, 3),
        "batching": settings.policy,
        "mode": mode_of(settings),
        "places": places_of(settings, model.dispatcher.share) if model.by_rows else None,
        "notes": notes_of(model),
        "replaced": before is not None,
        "changed": [] if before is None else _changed(shown_settings(vars(before.settings)), settings_of(model)),
        "kept": [] if before is None else [ROWS[name].yaml for name in before.kept if ROWS[name].yaml],
        "mostRows": model.most_rows,
        "alone": takes is not None and not (takes.built_in or takes.batches or takes.waits or takes.streams),
        "inTensors": takes is None and bool(settings.inputs),
        "workers": model.pool.wanted,
        "onDemand": model.presence.comes,
    }


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"setting": name, "before": value, "after": after[name]}
        for name, value in before.items()
        if value != after[name]
    ]
