"""The caches of all versions that have one, as a service of the daemon."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from tsctl.daemon.extension import Kernel, MetricRow, Service
from tsctl.daemon.extensions.cache import limits_of
from tsctl.daemon.extensions.cache.answers import AnswerCache
from tsctl.daemon.metrics.exposition import MetricFamily, family
from tsctl.daemon.models.version import ModelVersion


class CacheService(Service):
    """The service.

    Args:
        metrics: the rows of its metrics.
    """

    def __init__(self, kernel: Kernel, metrics: Sequence[MetricRow]) -> None:
        self._metrics = metrics
        self._registry = kernel.registry
        self._recurring = kernel.recurring

    def attach(self, model: ModelVersion) -> None:
        # The answer to a piece of a sequence depends on what came before: a cache would give a wrong one.
        if model.settings.cache is None or not model.dispatcher.sends_batches:
            return
        seconds, most = limits_of(model.settings.cache)
        model.watchers += (AnswerCache(model, seconds, most, partial(self._note_full, model)),)

    def describe(self, model: ModelVersion) -> Mapping[str, Any]:
        cache = cache_of(model)
        if cache is None:
            return {}
        return {
            "cache": {
                "seconds": cache.seconds, "bytes": cache.most, "answers": len(cache), "bytesKept": cache.bytes,
                "hits": cache.hits, "shared": cache.shared, "misses": cache.misses,
            }
        }  # fmt: skip

    def families(self) -> Iterable[MetricFamily]:
        caches = [(model, cache) for model in self._registry if (cache := cache_of(model)) is not None]
        for index, row in enumerate(self._metrics):
            samples = [
                (
                    {"model": model.name, "version": model.version},
                    (cache.hits, cache.shared, cache.misses, cache.bytes)[index],
                )
                for model, cache in caches
            ]
            yield family(row.name, row.kind, row.help, samples)

    def _note_full(self, model: ModelVersion) -> None:
        text = "answers leave the cache before their time: `cache` in model-config.yaml may have more `bytes`"
        self._recurring.note("cache-full", text, model=model.name, version=model.version)


def cache_of(model: ModelVersion) -> AnswerCache | None:
    """Return the cache of a version, None if it has none."""
    return next((each for each in model.watchers if isinstance(each, AnswerCache)), None)
