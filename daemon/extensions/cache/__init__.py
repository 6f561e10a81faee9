"""Answers that are given again: a cache of one version's answers, where `cache` in `model-config.yaml` asks for it.

answers   the cache of one version, and the requests that wait for an equal one
"""

from collections.abc import Mapping
from typing import Any

from tsctl.daemon.declarations import EventRow, MetricRow
from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.model_settings.kinds import Document
from tsctl.daemon.model_settings.row import ModelSetting
from tsctl.daemon.setting_values import parse_size

_ALLOWED = "a mapping such as {seconds: 60, bytes: 64MiB}, of numbers above 0"


def limits_of(value: Mapping[str, Any]) -> tuple[float, int]:
    """Return how many seconds an answer is kept, and how many bytes all answers of a version may take.

    Raises:
        ValueError: the value is no such mapping.
    """
    if set(value) != {"seconds", "bytes"}:
        raise ValueError(_ALLOWED)
    seconds, most = value["seconds"], parse_size(str(value["bytes"]))
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf") or not most:
        raise ValueError(_ALLOWED)
    return float(seconds), most


def _is_cache(value: Any) -> bool:
    try:
        limits_of(value)
    except (TypeError, ValueError, OverflowError):  # the last of a whole number beyond any float
        return False
    return True


class CacheExtension(Extension):
    name = "cache"
    needs = "cache"
    model_settings = (
        ModelSetting(
            name="cache",
            kind=Document(_ALLOWED, _is_cache),
            label="cache of answers",
            help="For how long answers are given again to equal requests, and how many bytes they may take; no cache by"
            " default.",
            yaml="cache",
            why="Only the archive can set this, because its author knows that equal requests have equal answers.",
        ),
    )
    events = (EventRow("cache-full", "info", "answers leave a version's cache before their time, to make room"),)
    metrics = (  # of versions with a cache
        MetricRow("tsctl_cache_hits_total", "counter", "Requests that were answered from the cache"),
        MetricRow("tsctl_cache_shared_total", "counter", "Requests that were answered with the answer of an equal one"),
        MetricRow("tsctl_cache_misses_total", "counter", "Requests that were not in the cache, and went to a worker"),
        MetricRow("tsctl_cache_bytes", "gauge", "Bytes of the answers in the cache"),
    )

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.cache.answers import CacheService

        return CacheService(kernel)
