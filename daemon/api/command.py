"""Commands that take a while, and tell how far they are.

A client that accepts `application/x-ndjson` is told the progress: JSON objects, a line each, the
last with the status and the document that would have been the answer. What was begun goes on when
its client leaves.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from daemon.errors import DaemonError
from daemon.http.exchange import Exchange
from daemon.http.messages import Response, error_body, json_response
from daemon.models.registration import Progress, no_progress

NDJSON = "application/x-ndjson"

Command = Callable[[Progress], Awaitable[tuple[int, Any]]]  # does something, answers status and document


async def run(exchange: Exchange, command: Command) -> None:
    """Run a command; tell its progress to a client that wants it."""
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
