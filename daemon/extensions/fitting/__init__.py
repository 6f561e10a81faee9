"""Batches that fit into memory: a version whose batches did not gets smaller ones, and larger ones are tried later.

fitting   one version: what its workers tell, and the timer for the next try
"""

from tsctl.daemon.declarations import EventRow, MetricRow
from tsctl.daemon.extension import Extension, Kernel, Service


class FittingExtension(Extension):
    name = "fitting"
    events = (
        EventRow("batch-capped", "warning", "a batch did not fit into a worker's memory: smaller ones are sent"),
        EventRow("batch-raised", "info", "larger batches are tried again, some time after one did not fit into memory"),
    )
    metrics = (
        MetricRow(
            "tsctl_batches_too_large_total", "counter", "Batches that did not fit into the memory of their worker"
        ),
    )

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.fitting.fitting import FittingService

        return FittingService(kernel)
