"""The verdicts of all versions as a service of the daemon."""

from collections.abc import Mapping
from typing import Any

from tsctl.daemon.extension import Service
from tsctl.daemon.extensions.verdict.verdict import VerdictFacts, verdict
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion


class VerdictService(Service):
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def describe(self, model: ModelVersion) -> Mapping[str, Any]:
        """Return the sentence; None where there is none."""
        return {"verdict": verdict(self._facts(model)) or None}

    def live(self, model: ModelVersion) -> Mapping[str, Any]:
        return self.describe(model)

    def _facts(self, model: ModelVersion) -> VerdictFacts:
        pool, recent = model.pool, model.metrics.recent(model.clock.now())
        # What waits or runs has come, too: under overload, less is answered than comes.
        came = recent.requests + model.waiting + model.running
        return VerdictFacts(
            model.name if self._registry.is_default(model) else f"{model.name}/{model.version}",
            model.crashing,
            recent.requests,
            recent.errors,
            came / recent.seconds if recent.seconds else 0.0,
            _capacity(model),
            pool.ready,
            pool.wanted,
            pool.shortage_with,
        )


def _capacity(model: ModelVersion) -> float | None:
    """Return the requests a second of one worker.

    None before the first batch, and where a worker runs row by row: a batch's time says nothing of its rate then.
    """
    times, best = model.traffic.times, model.traffic.best
    if model.by_rows or not times.known:
        return None
    costs = {} if best is None else best.costs
    if best is not None and costs.get(best.size):  # measured while all workers were busy
        return 1.0 / costs[best.size]
    # While all batches have one size, only the time of that one is known.
    size = model.settings.batch_size if times.spread else max(model.dispatcher.sizes, default=1)
    seconds = times.of(size)
    return size / seconds if seconds > 0.0 else None
