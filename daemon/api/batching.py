"""What the batching of a model version does and has learned, as a document.

policy, batchSize, maxBatchDelay        the settings; milliseconds, as everywhere in this API
running                                 requests that a worker has now
learned.batchMs, learned.requestMs      a batch of n takes batchMs + n · requestMs; None before there is one
learned.guess                           the sizes have not differed yet, so how they divide is not known
learned.together                        what batches took, by how many workers were busy ("busy", this one's included),
                                        and by size: "size" and "ms", an average of the latest
arrivalsPerSecond                       lately: of the last two hundred requests or so, and the silence since
turnaroundMs                            median from an answer to the request that follows it; None before
regularConnections, openConnections     those that send one request after the other; all that are there
longestHoldMs                           the most that batching has kept a request from an idle worker
reasons, meanings, sizes                batches by why they were sent when they were, in words, and by size
isolated                                batches that failed and whose requests ran alone, and how many of those failed
expired                                 requests whose time was over in the queue, and with a worker
"""

from typing import Any

from daemon.batching.collector import REASONS
from daemon.models.model import Model


def batching_of(model: Model) -> dict[str, Any]:
    """Describe it as it is now."""
    settings, dispatcher, traffic = model.settings, model.dispatcher, model.traffic
    times, now = traffic.times, model.clock.now()
    return {
        "policy": settings.policy,
        "batchSize": settings.batch_size,
        "maxBatchDelay": _ms(settings.max_delay),
        "running": model.running,
        "learned": {
            "batchMs": _ms(times.a) if times.known else None,
            "requestMs": _ms(times.c) if times.known else None,
            "guess": times.known and not times.spread,
            "together": [
                {"busy": kind.busy, "size": kind.size, "ms": _ms(kind.seconds)} for kind in traffic.together.measured()
            ],
        },
        "arrivalsPerSecond": round(traffic.rate_at(now), 3),
        "turnaroundMs": _ms(traffic.turnarounds.median) or None,
        "regularConnections": traffic.regulars_at(now),
        "openConnections": traffic.callers.open,
        "longestHoldMs": _ms(dispatcher.longest_hold),
        "reasons": dict(sorted(dispatcher.reasons.items())),
        "expired": {where: dispatcher.expired[where] for where in ("queue", "worker")},
        "isolated": {"batches": model.metrics.isolated, "requestsFailed": model.metrics.failed_alone},
        "meanings": {reason: REASONS[reason] for reason in sorted(dispatcher.reasons)},
        "sizes": {str(size): count for size, count in sorted(dispatcher.sizes.items())},
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
