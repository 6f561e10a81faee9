"""The fields and metrics that the services of a daemon add to the core's."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any

from tsctl.daemon.api.management.describe import with_fields
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.extension import Service
from tsctl.daemon.metrics.exposition import MetricFamily, family
from tsctl.daemon.models.version import ModelVersion


class Fields:
    """The fields of all services in the documents of the daemon, and their metrics.

    Args:
        started: when the daemon did, seconds since the epoch.

    Attributes:
        services: all of them; none before they are installed.
    """

    def __init__(self, clock: Clock, started: float) -> None:
        self.services: Sequence[Service] = ()
        self.started = started
        self._clock, self._begun = clock, clock.now()

    def of(self, view: VersionView, model: ModelVersion) -> dict[str, Any]:
        """Return the fields of a version in one of its documents."""
        fields: dict[str, Any] = {}
        for each in self.services:
            fields = with_fields(fields, each.fields(model, view))
        return fields

    def own(self) -> dict[str, Any]:
        """Return the fields of the daemon itself, and the seconds since its start, whatever its machine's time is."""
        fields = dict(chain.from_iterable(each.document().items() for each in self.services))
        return fields | {"upSeconds": self._clock.now() - self._begun}

    def families(self, asked: Collection[str] = ()) -> Iterable[MetricFamily]:
        """Return the metrics as they are now, with those that are shown only to clients that ask for these names."""
        for service in self.services:
            rows = service.extension.metrics
            if all(row.asked and row.name not in asked for row in rows):
                continue  # without the work of its samples
            for row, samples in zip(rows, service.samples(), strict=False):  # none of one that has none
                if row.asked and row.name not in asked:
                    continue
                values = [(dict(zip(row.labels, labels, strict=True)), value) for labels, value in samples]
                yield family(row.name, row.kind, row.help, values)
