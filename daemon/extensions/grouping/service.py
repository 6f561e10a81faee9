"""The grouping of all versions, as a service; `batching.groupByLength` and `batching.padding` in their documents.

setting     by an order, or none                                grouped, or not
unset       `auto`, and batches by age have shown padding       grouped from then on (padding.py)
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tsctl.daemon.core.job import Batch, Outcome
from tsctl.daemon.declarations import DETAILED, VersionView
from tsctl.daemon.extension import Service
from tsctl.daemon.extensions.grouping import GroupingExtension
from tsctl.daemon.extensions.grouping.grouping import LengthGrouping
from tsctl.daemon.extensions.grouping.padding import WORTH_IT, Padding
from tsctl.daemon.models.version import ModelVersion

LOOK_EVERY = 8  # batches
NAME = GroupingExtension.name


class GroupingService(Service):
    def follow(self, model: ModelVersion) -> None:
        grouped: GroupedVersion = model.parts.get(NAME) or model.parts.setdefault(NAME, GroupedVersion(model))
        grouped.follow_settings()

    def fields(self, model: ModelVersion, view: VersionView) -> Mapping[str, Any]:
        if view not in DETAILED:
            return {}
        grouped: GroupedVersion | None = model.parts.get(NAME)
        padding = None if grouped is None else round(grouped.learned, 3) or None
        found = {"groupByLength": model.queue.choice is not None, "padding": padding}
        return {"batching": found} if view is VersionView.DESCRIPTION else found


class GroupedVersion:
    """One version; a `BatchWatcher` while it may show whether it pads.

    Attributes:
        learned: the part of the time that padding took when grouping began by itself; 0.0 until then.
    """

    def __init__(self, model: ModelVersion) -> None:
        self.learned = 0.0
        self._model = model
        self._padding: Padding | None = None  # until a batch may be padded

    def follow_settings(self) -> None:
        """Group the jobs, or stop that, as the settings say; what was learned of lengths stays."""
        model = self._model
        settings, batches = model.settings, not model.by_rows and model.dispatcher.sends_batches
        unset = settings.policy == "auto" and settings.origins.get("group_by_length") == "default"
        others = tuple(each for each in model.dispatcher.watchers if each is not self)
        watches = batches and unset and not self.learned and settings.batch_size > 1
        model.dispatcher.watchers = (*others, self) if watches else others
        model.traffic.learn_lengths(batches and (settings.group_by_length or (unset and self.learned > 0.0)))
        padded = model.traffic.padded
        timeout = settings.queue_timeout or math.inf
        model.queue.choice = None if padded is None else LengthGrouping(padded, timeout)

    def returned(self, worker: int, batch: Batch, outcomes: Sequence[Outcome], seconds: float, now: float) -> None:  # noqa: ARG002
        """Learn from a batch of several lengths; begin to group where padding takes a good part of the time."""
        if not seconds or batch.first or len(batch.jobs) < 2 or batch.reason == "retry":
            return
        lengths = [job.size for job in batch.jobs]
        if min(lengths) == max(lengths):
            return
        padding = self._padding = self._padding or Padding()
        padding.learn_batch(lengths, seconds)
        if not padding.batches % LOOK_EVERY and (share := padding.share) >= WORTH_IT:
            self._begin(share)

    def _begin(self, share: float) -> None:
        model, self.learned = self._model, share
        self.follow_settings()
        model.reports.add("grouped", f"batches of similar lengths from now on: padding took {share:.0%} of the time")
