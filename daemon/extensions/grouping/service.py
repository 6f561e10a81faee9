"""The grouping of all versions, as a service; `batching.groupByLength` in their documents."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from tsctl.daemon.extension import Service
from tsctl.daemon.extensions.grouping.grouping import LengthGrouping
from tsctl.daemon.models.version import ModelVersion


class GroupingService(Service):
    def attach(self, model: ModelVersion) -> None:
        model.change_listeners.append(partial(follow_settings, model))
        follow_settings(model)

    def describe(self, model: ModelVersion) -> Mapping[str, Any]:
        return {"batching": {"groupByLength": model.settings.group_by_length}}


def follow_settings(model: ModelVersion) -> None:
    """Group the jobs of a version, or stop that, as its settings say; what was learned of lengths stays."""
    batches = not model.by_rows and model.dispatcher.sends_batches
    model.traffic.learn_lengths(batches and model.settings.group_by_length)
    padded = model.traffic.padded
    timeout = model.settings.queue_timeout or math.inf
    model.queue.choice = None if padded is None else LengthGrouping(padded, timeout)
