"""The OpenAPI description of the management API, the answer to `OPTIONS /models`, and of the control socket."""

from typing import Any

from tsctl.daemon.api.management.commands import (
    CHANGED,
    CLASHES,
    FAILED,
    FOUND,
    NDJSON,
    NOT_NOW,
    UNDERSTOOD,
    finished,
)
from tsctl.daemon.api.management.loading import ACTIONS
from tsctl.daemon.api.management.patch import CHANGEABLE
from tsctl.daemon.api.openapi import (
    BOOLEAN,
    SECONDS,
    STATUS,
    STRING,
    UNKNOWN_CALLER,
    Operation,
    Schema,
    answer,
    document,
    failure,
    listed,
    members,
    operation,
    path_parameters,
    query_parameters,
    whole,
)
from tsctl.daemon.declarations import Operations
from tsctl.daemon.tables import MODEL_SETTINGS, operations_of_extensions

_SETTINGS: dict[str, Schema] = {row.rest: row.kind.schema for row in CHANGEABLE.values()}
_SYNCHRONOUS = {"synchronous": BOOLEAN}
# The parameters of registering, by query or as members of a JSON object; -1 is TorchServe's "not given".
REGISTERING: dict[str, Schema] = {
    "url": STRING,
    "model_name": STRING,
    "model_version": STRING,
    "sha256": STRING,
    "handler": STRING,
    "runtime": {"type": "string", "enum": ["python", "python3"]},
    **{row.rest: row.kind.schema for row in MODEL_SETTINGS if row.rest},
    "s3_sse_kms": {"type": "boolean", "enum": [False]},  # TorchServe's; true is rejected
    "replace": BOOLEAN,
    "reset": BOOLEAN,
    "ephemeral": BOOLEAN,
    "owner": STRING,
    "owner_pid": whole(1),
    "warnings": BOOLEAN,
    **_SYNCHRONOUS,
}
_SCALING: dict[str, Schema] = {
    "min_worker": whole(0), "max_worker": whole(0), "warnings": BOOLEAN, **_SYNCHRONOUS,
}  # fmt: skip

_PATHS = {"Model": "/models/{model_name}", "Version": "/models/{model_name}/{model_version}"}
_LEVEL: Schema = {"type": "string", "enum": ["info", "warning", "error"]}
_SETTING = members({"name": STRING, "value": {}, "origin": STRING, "changes": STRING | {"nullable": True}})
_INPUT = members({"name": STRING, "kind": STRING, "annotation": STRING})
_DECLARED = members(
    {
        "inputs": listed(_INPUT), "batches": BOOLEAN, "batchSize": whole(1) | {"nullable": True}, "streams": BOOLEAN,
        "output": STRING,
    }
) | {"nullable": True}  # fmt: skip
_MODEL = members(
    {
        "modelName": STRING, "modelVersion": STRING, "modelUrl": STRING, "runtime": STRING, "minWorkers": whole(0),
        "maxWorkers": whole(0), "batchSize": whole(1), "maxBatchDelay": whole(0), "responseTimeout": whole(0),
        "startupTimeout": whole(0), "deviceType": {"type": "string", "enum": ["cpu", "gpu"]},
        "loadedAtStartup": BOOLEAN,
        "workers": listed(members({"id": STRING, "startTime": STRING, "status": STRING, "pid": whole()})),
        "jobQueueStatus": members({"remainingCapacity": whole(0), "pendingRequests": whole(0)}),
        "tsctl": members(
            {"state": STRING, "retryable": BOOLEAN, "settings": listed(_SETTING), "declared": _DECLARED,
             "notes": listed(STRING), "ephemeral": BOOLEAN}
        ),
    },
    {"deviceIds": listed(whole(0))},
)  # fmt: skip
_LIST = members({"models": listed(members({"modelName": STRING, "modelUrl": STRING}))}, {"nextPageToken": STRING})
_CHANGES = members(
    {
        "status": STRING, "modelName": STRING, "modelVersion": STRING,
        "changes": listed(members({"name": STRING, "from": {}, "to": {}})),
    }
)  # fmt: skip
_WORKER = members(
    {
        "modelName": STRING, "modelVersion": STRING, "directory": STRING, "handler": STRING,
        "manifest": {"type": "object"}, "python": STRING | {"nullable": True}, "devices": listed(whole(0)),
        "workers": whole(0), "settings": {"type": "object"}, "batching": {"type": "object"},
    }
)  # fmt: skip

_EVENT = members(
    {
        "sequence": whole(1), "time": {"type": "number"}, "level": _LEVEL, "kind": STRING, "model": STRING,
        "version": STRING, "worker": whole(0), "requests": listed(STRING), "text": STRING,
    }
)  # fmt: skip
_EVENTS = members({"events": listed(_EVENT), "last": whole(0)})
_EVENTS_ASKED: dict[str, Schema] = {
    "model": STRING, "level": _LEVEL, "since": {"type": "number"}, "after": whole(0), "limit": whole(0),
}  # fmt: skip

_WORDS: dict[str, Schema] = {
    "status": {"type": "object"},
    "config": listed(members({"name": STRING, "value": {}, "origin": STRING})),
    "store": listed(members({"name": STRING, "bytes": whole(0) | {"nullable": True}})),
}

_TEXTS = {
    "status": "The daemon and its models.",
    "config": "Each setting of the daemon, with its value and source.",
    "store": "The archives of the model store.",
    "worker": "How the model is served: its files, its settings, the state of its batching.",
}
_PROGRESS = ": with `Accept: application/x-ndjson` its progress, a JSON object in each line, of which the last has the"
_COMMAND = {
    "200": {
        "description": f"Done{_PROGRESS} status and the document.",
        "content": {"application/json": {"schema": STATUS}, NDJSON: {"schema": STRING}},
    },
    "202": answer("Started: `synchronous` is false.", STATUS),
    "206": answer("Done, but another client has scaled the workers since, or a worker has just exited.", STATUS),
}


def describe_management(*, own: bool = False) -> dict[str, Any]:
    """Return the description of the management API; `own`: with the routes of the control socket, too."""
    paths: dict[str, dict[str, Operation]] = {
        "/models": {"get": _list(), "post": _command("registerModel", "", REGISTERING, required="url")}
    }
    described, version = describing(), _PATHS["Version"]
    for suffix, path in _PATHS.items():
        named = {"model_version": STRING} if suffix == "Model" else {}
        paths[path] = {
            **described[path],
            "put": _command(f"scale{suffix}", path, _SCALING | named),
            "patch": finished(f"set{suffix}", path, _CHANGES, _SETTINGS),
            "delete": finished(f"unregister{suffix}", path, STATUS, {"owner": STRING}),
        }
    off = failure("Models are not registered or unregistered at this address: `--enable-model-api` is not given.")
    for path, word in (("/models", "post"), ("/models/{model_name}", "delete"), (version, "delete")):
        paths[path][word]["responses"]["405"] = off
    paths[f"{version}/set-default"] = {"put": finished("setDefault", f"{version}/set-default", STATUS)}
    for word in ACTIONS:
        paths[f"{version}/{word}"] = {"post": _command(f"{word}Version", f"{version}/{word}", _SYNCHRONOUS)}
    ready = answer("Readiness: whether the model has a ready worker.", members({"name": STRING, "ready": BOOLEAN}))
    paths["/v1/models/{model_name}"] = {
        "get": operation("kserveReady", path_parameters("{model_name}"), {"200": ready}, FOUND | UNKNOWN_CALLER)
    }
    further = (_own(), *operations_of_extensions(own=True)) if own else ()
    return document(paths, *operations_of_extensions(own=False), *further)


def _list() -> Operation:
    query = query_parameters({"limit": whole(), "next_page_token": whole()})
    return operation(
        "listModels", query, {"200": answer("A page of the registered models.", _LIST)}, UNDERSTOOD | UNKNOWN_CALLER
    )


def describing(query: dict[str, Schema] | None = None, further: dict[str, Schema] | None = None) -> Operations:
    """Return the operations that describe versions, with parameters of the query, and further optional members."""
    model = {**_MODEL, "properties": {**_MODEL["properties"], **(further or {})}}
    told = {"200": answer("One version, or every version for the version `all`.", listed(model))}
    asked, failures = query_parameters(query or {}), FOUND | FAILED | NOT_NOW | UNKNOWN_CALLER
    return {
        path: {"get": operation(f"describe{suffix}", path_parameters(path) + asked, told, failures)}
        for suffix, path in _PATHS.items()
    }


def _command(name: str, path: str, query: dict[str, Schema], required: str = "") -> Operation:
    """Return the description of a long command, which starts workers."""
    failures = CHANGED | {"507": "Memory did not suffice to start the workers."}
    return operation(name, path_parameters(path) + query_parameters(query, required), _COMMAND, failures)


def _own() -> dict[str, dict[str, Operation]]:
    paths: dict[str, dict[str, Operation]] = {
        f"/tsctl/{word}": {"get": _told(word, word, "", schema)} for word, schema in _WORDS.items()
    }
    for suffix, path in (("Model", "{model_name}"), ("Version", "{model_name}/{model_version}")):
        paths[f"/tsctl/worker/{path}"] = {"get": _told("worker", f"worker{suffix}", path, _WORKER)}
    events = answer("The daemon's events, the oldest first; a stream for `Accept: text/event-stream`.", _EVENTS)
    paths["/tsctl/events"] = {
        "get": operation("events", query_parameters(_EVENTS_ASKED), {"200": events}, UNDERSTOOD | NOT_NOW)
    }
    asked = {"grace": SECONDS, "timeout": SECONDS, "python": STRING, "check_memory": BOOLEAN}
    told = {"200": answer("The new daemon serves.", {"type": "object"})}
    failures = UNDERSTOOD | FAILED | NOT_NOW | CLASHES
    paths["/tsctl/upgrade"] = {"post": operation("upgrade", query_parameters(asked), told, failures)}
    return paths


def _told(word: str, name: str, path: str, schema: Schema) -> Operation:
    return operation(name, path_parameters(path), {"200": answer(_TEXTS[word], schema)}, FOUND)
