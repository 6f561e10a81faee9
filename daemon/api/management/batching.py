"""The state of batching for a model version, as a document.

policy, batchSize, maxBatchDelay        the settings; milliseconds, as everywhere in this API
mode, places                            `batch`; or `continuous`, `async`, and the most requests in a worker
running                                 requests in workers now
learned.batchMs, learned.requestMs      a batch of n takes batchMs + n · requestMs (l(b) = αb + β of Nexus, SOSP '19);
                                        None before the first batch
learned.byteMs                          what each request of a batch takes longer for each byte of the longest; None
                                        where batches are not formed by length
learned.guess                           true while all batches had one size: the division into the two is a guess
learned.bestSize                        how many requests `auto` puts into a batch at most, and …
learned.sizes                           … what a request takes in batches of each known size ("size", "requestMs"), by
                                        which it has chosen; None and [] for other policies
learned.together                        average time of recent batches ("ms"), by number of busy workers ("busy", with
                                        the batch's own) and by batch size ("size")
arrivalsPerSecond                       recent rate: the last two hundred requests or so, and the silence since
turnaroundMs                            median from an answer to the same client's next request; None before the first
regularConnections, openConnections     connections that send one request after the other; all open connections
longestHoldMs                           the longest time that batching has kept a request from an idle worker
reasons, meanings                       batches by the reason they were sent, the reasons in words
sizes, ranges                           batches by size; the same as bars: each up to 8, then 9-16, 17-32 …
isolated                                failed batches whose requests ran alone, and how many of these requests failed
expired                                 requests that expired in the queue, and in a worker
"""

from typing import Any

from tsctl.daemon.models.registering.spec import mode_of, places_of
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.tables import BATCH_REASONS, size_bars


def batching_of(model: ModelVersion) -> dict[str, Any]:
    """Return the present state of a version's batching."""
    settings, dispatcher, traffic = model.settings, model.dispatcher, model.traffic
    times, now = traffic.times, model.clock.now()
    sizes = {str(size): count for size, count in sorted(dispatcher.sizes.items())}
    return {
        "policy": settings.policy,
        "mode": mode_of(settings),
        "places": places_of(settings, model.dispatcher.share) if model.by_rows else None,
        "batchSize": settings.batch_size,
        "maxBatchDelay": _ms(settings.max_delay),
        "running": model.running,
        "learned": {
            "batchMs": _ms(times.per_batch) if times.known else None,
            "requestMs": _ms(times.per_job) if times.known else None,
            "byteMs": None if traffic.padded is None else round(traffic.padded.per_byte * 1000, 6),
            "guess": times.known and not times.spread,
            **best_size_of(model),
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
        "isolated": {"batches": model.metrics.tally["isolated"], "requestsFailed": model.metrics.tally["failed_alone"]},
        "meanings": {reason: BATCH_REASONS[reason] for reason in sorted(dispatcher.reasons)},
        "sizes": sizes,
        "ranges": [{"sizes": label, "batches": count} for label, count in size_bars(sizes)],
    }


def best_size_of(model: ModelVersion) -> dict[str, Any]:
    """Return what `auto` has learned of the sizes of batches."""
    best = model.traffic.best
    return {
        "bestSize": None if best is None else best.size,
        "sizes": [
            {"size": size, "requestMs": _ms(seconds)} for size, seconds in (() if best is None else best.costs.items())
        ],
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
