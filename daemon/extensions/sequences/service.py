"""The sequences of all versions, as a service."""

import math
from collections.abc import Mapping
from typing import Any

from tsctl.daemon.batching.dispatcher import Dispatcher
from tsctl.daemon.core.job import Job
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.sequences.dispatcher import SequenceDispatcher
from tsctl.daemon.extensions.sequences.marks import SequenceHeaders
from tsctl.daemon.extensions.sequences.table import Sequences
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.daemon.models.settings import ModelSettings
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

    def dispatcher(self, settings: ModelSettings) -> type[Dispatcher] | None:
        return SequenceDispatcher if settings.sequences else None

    def attach(self, model: ModelVersion) -> None:
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
        job.client = asked.holder
        return False


def open_sequences(model: ModelVersion, names: SequenceHeaders) -> None:
    """Make the table of a version's sequences, if its dispatcher asks one; its settings and workers limit them."""
    dispatcher = model.dispatcher
    if not isinstance(dispatcher, SequenceDispatcher):
        return
    table: Sequences[Worker] = Sequences(model.name, names, overlapping=model.by_rows)

    def limit() -> None:
        settings = model.settings
        # Each worker can keep a sequence for every request of its batch.
        table.most = max(settings.max_sequences, settings.batch_size * max(1, model.presence.most))
        table.most_waiting = settings.sequence_jobs
        table.idle = settings.sequence_idle or math.inf
        table.total = settings.sequence_timeout or math.inf

    dispatcher.keep(table, names, limit, by_rows=model.by_rows)
    model.watchers += (_ClientShare(),)
    model.change_listeners.append(limit)
    limit()


def sequences_of(model: ModelVersion) -> Sequences[Worker] | None:
    """Return the open sequences of a version; None if it has none."""
    return model.dispatcher.sequences if isinstance(model.dispatcher, SequenceDispatcher) else None
