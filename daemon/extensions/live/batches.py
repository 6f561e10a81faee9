"""`GET /tsctl/batches?model=MODEL[/VERSION]&after=SEQUENCE`: the latest batches of a version that have ended.

last                  the sequence to ask for next; rises also if the version is replaced or the daemon restarted
batches               those behind `after`, the oldest first; at most 256 are kept:

    sequence, time        when it was sent, seconds since the epoch
    version               of the model
    size, limit           its requests, and the most that it might have had
    reason, meaning       why it was due, in a word and in words
    waitedMs, queued      how long its first request had waited; requests that it left in the queue
    worker, tookMs        process id, and the time there; null if the worker did not answer
    failed                requests that were answered with a status of 500 or more; all of a batch without answers
"""

import time
from typing import Any

from tsctl.daemon.api.management.commands import Parameters
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.texts.json_text import json_bytes
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import JSON, Response
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.tables import BATCH_REASONS

_DIGITS = 18  # of a sequence


def answer_batches(registry: Registry, exchange: Exchange) -> None:
    given = Parameters(exchange.request)
    name, slash, version = (given.text("model") or "").partition("/")
    if not name:
        raise BadRequest("Parameter model is required: MODEL or MODEL/VERSION.")
    after = given.text("after") or "0"
    if not (after.isascii() and after.isdigit() and len(after) <= _DIGITS):
        raise BadRequest(f"after is {after!r}; expected a sequence from an earlier answer.")
    model = registry.find(name, version if slash else None)
    document = batches_document(model, int(after), time.time())
    exchange.respond(Response(200, json_bytes(document), (JSON,)))


def batches_document(model: ModelVersion, after: int, now: float) -> dict[str, Any]:
    """Return the document; `now` in seconds since the epoch."""
    log, behind = model.dispatcher.log, now - model.clock.now()
    return {
        "last": log.last,
        "batches": [
            {
                "sequence": each.sequence,
                "time": round(each.sent + behind, 6),
                "version": model.version,
                "size": each.size,
                "limit": each.limit,
                "reason": each.reason,
                "meaning": BATCH_REASONS[each.reason],
                "waitedMs": round(each.waited * 1000, 3),
                "queued": each.queued,
                "worker": each.worker,
                "tookMs": round(each.took * 1000, 3) if each.took else None,
                "failed": each.failed,
            }
            for each in log.after(after)
        ],
    }
