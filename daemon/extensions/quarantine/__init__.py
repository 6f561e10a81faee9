"""Requests that end workers are kept apart from others, and refused for a while.

quarantine    one version's suspects, and the jobs to be compared with them
dispatcher    the dispatcher that asks these
service       which versions have it
"""

from tsctl.daemon.declarations import EventRow, MetricRow
from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.model_settings.kinds import Boolean
from tsctl.daemon.model_settings.row import ModelSetting


class QuarantineExtension(Extension):
    name = "quarantine"
    model_settings = (
        ModelSetting(
            name="quarantine",
            group="Failures and recording",
            kind=Boolean(),
            label="quarantine",
            help="Isolate requests that end workers, and reject them for a while; on by default.",
            yaml="quarantine",
            rest="quarantine",
            flag="--quarantine",
            default=True,
            changes="from the next request on",
        ),
    )
    events = (EventRow("request-quarantined", "warning", "a request is refused for a while: it has ended workers"),)
    batch_reasons = (("suspect", "a request that a worker had died with, alone"),)
    metrics = (
        MetricRow(
            "tsctl_requests_quarantined_total",
            "counter",
            "Requests rejected because the same request had ended workers",
        ),
    )

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.quarantine.service import QuarantineService

        return QuarantineService(kernel)
