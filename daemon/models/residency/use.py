"""When a version was used, and when it will have been idle for its keep-alive; on the daemon's clock."""

import math

from daemon.models.version import ModelVersion
from daemon.setting_values import FOREVER


def last_use(model: ModelVersion) -> float:
    """Return when the last request came or was answered; -inf before the first."""
    trace = model.traffic.trace
    return max(trace[-1] if trace else -math.inf, model.metrics.returned_at or -math.inf)


def has_work(model: ModelVersion) -> bool:
    """Return whether a request waits or runs, or a sequence is open."""
    return not model.idle or bool(model.sequences)


def is_movable(model: ModelVersion) -> bool:
    """Return whether a loaded version may be unloaded by the daemon at all."""
    return model.residence.on_demand and not model.settings.pinned and not model.stopping


def keep_alive_of(model: ModelVersion) -> float:
    """Return how many seconds a version stays loaded without work; inf for always."""
    seconds = model.settings.keep_alive
    return math.inf if seconds is None or seconds >= FOREVER else seconds
