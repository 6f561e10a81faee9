"""Batches of requests with similar lengths, for models that pad a batch to its longest (`groupByLength`).

grouping   which of the waiting jobs are in the next batch
service    which versions have it
"""

from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.model_settings.kinds import Boolean
from tsctl.daemon.model_settings.row import ModelSetting


class GroupingExtension(Extension):
    name = "grouping"
    model_settings = (
        ModelSetting(
            name="group_by_length",
            kind=Boolean(),
            label="grouping by length",
            help="Form batches of requests with similar lengths, for models that pad to the longest; off by default.",
            yaml="groupByLength",
            rest="group_by_length",
            flag="--group-by-length",
            default=False,
            changes="from the next batch on",
        ),
    )
    help_groups = (("Batching", ("group_by_length",)),)

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.grouping.service import GroupingService

        del kernel
        return GroupingService()
