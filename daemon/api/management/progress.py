"""Long commands with progress.

A client that accepts `application/x-ndjson` receives the progress as JSON objects, one per line; the
last line holds the status and the document that other clients receive as the answer. A command
continues when its client disconnects.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response, error_body, json_response
from tsctl.daemon.models.registrar import Progress, no_progress

NDJSON = "application/x-ndjson"

Command = Callable[[Progress], Awaitable[tuple[int, Any]]]  # runs the command; returns status and document


async def run(exchange: Exchange, command: Command) -> None:
    """Run a command; send progress to clients that accept NDJSON."""
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
