"""The fields that the services of a daemon add to the core's."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from tsctl.daemon.api.management.describe import with_fields
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.extension import Service
from tsctl.daemon.models.version import ModelVersion


class Fields:
    """The fields of all services in the documents of the daemon.

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
