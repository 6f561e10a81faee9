"""The common parts of the commands of the management API: those of the core and of extensions."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tsctl.daemon.api.openapi import (
    UNKNOWN_CALLER,
    Operation,
    Schema,
    answer,
    operation,
    path_parameters,
    query_parameters,
)
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Request, Response, error_body, json_response
from tsctl.daemon.models.persistence.snapshot_file import one_change
from tsctl.daemon.models.registrar import Progress, Registrar, no_progress
from tsctl.daemon.models.registry import Registry

NDJSON = "application/x-ndjson"

Command = Callable[[Progress], Awaitable[tuple[int, Any]]]  # runs the command; returns status and document


async def run(exchange: Exchange, command: Command) -> None:
    """Long commands with progress.

    A client that accepts `application/x-ndjson` receives the progress as JSON objects, one per line; the
    last line holds the status and the document that other clients receive as the answer. A command
    continues when its client disconnects.
    """
    if NDJSON not in exchange.request.header("accept"):
        status, document = await command(no_progress)
        exchange.respond(json_response(document, status))
        return

    def tell(event: dict[str, Any]) -> None:
        exchange.send(json.dumps(event).encode() + b"\n")

    def progress(stage: str, done: int, total: int) -> None:
        tell({"stage": stage, "done": done, "total": total})

    exchange.start(Response(200, headers=(("Content-Type", NDJSON),)))
    try:
        status, document = await command(progress)
    except DaemonError as error:
        status, document = error.status, error_body(error.status, error.kind, str(error))
    tell({"stage": "done", "status": status, "document": document})
    exchange.finish()


CHANGE_HEADER = "x-tsctl-change"  # a token that the commands of one change have in common, see `tsctl rollback`
READING = frozenset({"GET", "HEAD", "OPTIONS"})

UNDERSTOOD = {"400": "The request is malformed, or a parameter is invalid."}
FOUND = {**UNDERSTOOD, "404": "The model, version, archive or route does not exist."}
FAILED = {"500": "The command failed; the message has the reason."}
NOT_NOW = {"503": "The daemon is being upgraded or stopped, or no worker can answer."}
CLASHES = {"409": "The version is already registered, is being replaced, or is in a state that forbids the command."}
CHANGED = FOUND | FAILED | NOT_NOW | CLASHES | UNKNOWN_CALLER


async def awaited(registry: Registry, name: str, version: str | None = None) -> None:
    """Wait until a model that is listed, or that the last run had, is registered, or could not be.

    Commands for it would else fail between the moment when the daemon listens, and that when its archive is unpacked.
    """
    while registry.expects(name) and not (registry.holds(name, version) if version else name in registry):
        settled = asyncio.get_running_loop().create_future()
        look = partial(_settle, settled)
        registry.listeners.append(look)
        try:
            await settled
        finally:
            registry.listeners.remove(look)


def _settle(settled: asyncio.Future[None]) -> None:
    if not settled.done():
        settled.set_result(None)


@contextmanager
def changing(registrar: Registrar, request: Request) -> Iterator[None]:
    """Answer a request inside the block; if it may change something, as a part of the change that it names.

    Raises:
        Upgrading: the request may change something, and the daemon is being upgraded.
    """
    if request.method in READING:
        yield
    else:
        with registrar.gate.change(), one_change(request.header(CHANGE_HEADER)):
            yield


def finished(
    name: str, path: str, schema: Schema, query: dict[str, Schema] | None = None, required: str = ""
) -> Operation:
    """Return the description of a command that is done once it is answered.

    Args:
        schema: of the answer.
        query: its parameters.
        required: the one that must be given.
    """
    parameters = path_parameters(path) + query_parameters(query or {}, required)
    return operation(name, parameters, {"200": answer("Done.", schema)}, CHANGED)
