"""Batches of requests with similar lengths, for models that pad a batch to its longest (`groupByLength`).

grouping   which of the waiting jobs are in the next batch
padding    whether a model pads: learned from batches by age
service    which versions have it
"""

from tsctl.daemon.declarations import EventRow
from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.model_settings.kinds import Boolean
from tsctl.daemon.model_settings.row import ModelSetting


class GroupingExtension(Extension):
    name = "grouping"
    model_settings = (
        ModelSetting(
            name="group_by_length",
            group="Batching",
            kind=Boolean(),
            label="grouping by length",
            help="Form batches of requests with similar lengths, for models that pad to the longest; if it is not said,"
            " `auto` does so by itself where padding takes a good part of the time.",
            yaml="groupByLength",
            rest="group_by_length",
            flag="--group-by-length",
            default=False,
            changes="from the next batch on",
        ),
    )
    events = (EventRow("grouped", "info", "batches are formed of requests with similar lengths: the model pads"),)

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.grouping.service import GroupingService

        del kernel
        return GroupingService()
