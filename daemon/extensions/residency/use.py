"""Whether a version may be unloaded, and after how long without work."""

import math

from tsctl.daemon.extensions.residency.residence import residence_of
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.setting_values import FOREVER


def has_work(model: ModelVersion) -> bool:
    """Return whether a request waits or runs, or workers keep the state of a client."""
    return not model.idle or model.dispatcher.remembered > 0


def is_movable(model: ModelVersion) -> bool:
    """Return whether a loaded version may be unloaded by the daemon at all."""
    return residence_of(model).on_demand and not model.settings.pinned and not model.stopping


def keep_alive_of(model: ModelVersion) -> float:
    """Return how many seconds a version stays loaded without work; inf for always."""
    seconds = model.settings.keep_alive
    return math.inf if seconds is None or seconds >= FOREVER else seconds
