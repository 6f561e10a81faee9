"""Sequences: requests with a common id, which run in order and on one worker, because that keeps their state.

marks        the place of a request in a sequence, as its headers tell it
table        the open sequences of one version
dispatcher   the dispatcher that brings requests to the workers of their sequences
service      which versions have it
"""

from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.model_settings.kinds import Boolean, Duration, Integer
from tsctl.daemon.model_settings.row import OF_HANDLER, ModelSetting
from tsctl.daemon.setting_values import Setting, grouped, parse_header_name


def _header(part: str, text: str) -> Setting:
    """Return the setting that renames one of TorchServe's three headers of sequences."""
    usual, key = f"ts_request_sequence_{part}", f"ts_header_key_sequence_{part}"
    name, variable = f"sequence_{part}_header", f"TS_REQUEST_SEQUENCE_{part.upper()}"
    return Setting(name, usual, parse_header_name, "NAME", text, key, worker=variable)


class SequencesExtension(Extension):
    name = "sequences"
    needs = "sequences"
    settings = grouped(
        "Workers and handlers",
        _header("id", "The header with the id of a request's sequence."),
        _header("start", "The header of a request that starts its sequence anew."),
        _header("end", "The header of a sequence's last request."),
    )
    model_settings = (
        ModelSetting(
            name="sequences", kind=Boolean(), label="sequences",
            help="Requests with the same `ts_request_sequence_id` run in order and on one worker,"
            " which keeps their state.",
            yaml="sequenceBatching", default=False, why=OF_HANDLER,
        ),
        ModelSetting(
            name="sequence_idle", kind=Duration("ms"), label="idle time of a sequence",
            help="Milliseconds without a request after which a sequence makes room for others; 0 is no limit.",
            yaml="sequenceMaxIdleMSec", default=300.0, why=OF_HANDLER,
        ),
        ModelSetting(
            name="sequence_timeout", kind=Duration("ms"), label="time of a sequence",
            help="Milliseconds since its first request after which a quiet sequence makes room for others;"
            " 0 is no limit.",
            yaml="sequenceTimeoutMSec", default=0.0, why=OF_HANDLER,
        ),
        ModelSetting(
            name="max_sequences", kind=Integer(1), label="largest number of sequences",
            help="Open sequences of the version; at least a batch for each worker.",
            yaml="maxNumSequence", default=1, why=OF_HANDLER,
        ),
        ModelSetting(
            name="sequence_jobs", kind=Integer(1), label="queue size of a sequence",
            help="Requests of one sequence that may wait.",
            yaml="maxSequenceJobQueueSize", default=1, why=OF_HANDLER,
        ),
    )  # fmt: skip
    batch_reasons = (("sequence", "the worker that keeps the requests' sequences was free"),)

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.sequences.service import SequencesService

        return SequencesService(kernel)
