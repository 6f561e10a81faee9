"""A request that can be sent again, to measure a model: the latest recorded one, or the archive's warm-up sample.

recorder   keeps the latest request of a version, if `recordInput` is set
"""

from tsctl.daemon.declarations import Operations
from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.model_settings.kinds import Boolean
from tsctl.daemon.model_settings.row import ModelSetting


class RecordingExtension(Extension):
    name = "recording"
    needs = "record_input"
    model_settings = (
        ModelSetting(
            name="record_input",
            group="Failures and recording",
            kind=Boolean(),
            label="recording of input",
            help="Keep the latest request in memory, so that measurements can repeat it; off by default.",
            yaml="recordInput",
            rest="record_input",
            flag="--record-input",
            default=False,
            changes="from the next request on; switching off drops the recorded request",
        ),
    )

    def operations(self, *, own: bool) -> Operations:
        from tsctl.daemon.extensions.recording.recorder import OPERATIONS

        return OPERATIONS if own else {}

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.recording.recorder import RecordingService

        return RecordingService(kernel)
