"""The sequences of all versions, as a service."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from tsctl.daemon.core.client import holder_of
from tsctl.daemon.core.job import Job
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.sequences.dispatcher import SequenceDispatcher
from tsctl.daemon.extensions.sequences.marks import SequenceHeaders
from tsctl.daemon.extensions.sequences.table import Sequences
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import Worker


class SequencesService(Service):
    """The service."""

    def __init__(self, kernel: Kernel) -> None:
        config = kernel.config
        self._names = SequenceHeaders(
            config.sequence_id_header, config.sequence_start_header, config.sequence_end_header
        )
        # Of any version: its handler may read the headers itself.
        kernel.registrar.factory.parameter_headers = self._names.parameters()

    def follow(self, model: ModelVersion) -> None:
        open_sequences(model, self._names)

    def fields(self, model: ModelVersion, view: VersionView) -> Mapping[str, Any]:
        if view is not VersionView.MEMBERS or (table := sequences_of(model)) is None:
            return {}
        settings = model.settings
        return {
            "stateful": True,
            "sequenceMaxIdleMSec": round(settings.sequence_idle * 1000),
            "sequenceTimeoutMSec": round(settings.sequence_timeout * 1000),
            "maxNumSequence": table.most,
            "maxSequenceJobQueueSize": settings.sequence_jobs,
        }


class _ClientShare:
    """Notes whose each request is, since a client has a share of the places for sequences."""

    def watch(self, job: Job, asked: RequestFacts) -> bool:
        """Note whose request it is."""
        job.client = holder_of(asked.client, asked.peer)
        return False


def open_sequences(model: ModelVersion, names: SequenceHeaders) -> None:
    """Keep the sequences of a version, if its settings ask for that; they and its workers limit the table."""
    table = sequences_of(model)
    if table is None:
        if not model.settings.sequences:
            return
        table = Sequences(model.name, names, overlapping=model.by_rows)
        model.dispatcher = dispatcher = model.path.dispatch_by(SequenceDispatcher)
        dispatcher.keep(table, names, partial(_limit, table, model), by_rows=model.by_rows)
        model.watchers += (_ClientShare(),)
    _limit(table, model)


def _limit(table: Sequences[Worker], model: ModelVersion) -> None:
    settings = model.settings
    # Each worker can keep a sequence for every request of its batch.
    table.most = max(settings.max_sequences, settings.batch_size * max(1, model.presence.most))
    table.most_waiting = settings.sequence_jobs
    table.idle = settings.sequence_idle or math.inf
    table.total = settings.sequence_timeout or math.inf


def sequences_of(model: ModelVersion) -> Sequences[Worker] | None:
    """Return the open sequences of a version; None if it has none."""
    return model.dispatcher.sequences if isinstance(model.dispatcher, SequenceDispatcher) else None
