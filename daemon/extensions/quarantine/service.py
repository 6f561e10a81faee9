"""The quarantines of all versions, as a service."""

from collections.abc import Mapping
from typing import Any

from tsctl.daemon.batching.dispatcher import Dispatcher
from tsctl.daemon.declarations import Samples, VersionView
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.quarantine.dispatcher import QuarantineDispatcher
from tsctl.daemon.extensions.quarantine.quarantine import LABEL, Quarantine
from tsctl.daemon.models.version import ModelVersion


class QuarantineService(Service):
    """The service."""

    def __init__(self, kernel: Kernel) -> None:
        self._counted = kernel.observation.metrics
        self._counted.refusal_labels += (LABEL,)

    def follow(self, model: ModelVersion) -> None:
        watch_for_suspects(model)

    def fields(self, model: ModelVersion, view: VersionView) -> Mapping[str, Any]:
        if view is not VersionView.DESCRIPTION:
            return {}
        quarantine = quarantine_of(model)
        suspects = 0 if quarantine is None else len(quarantine.suspects)
        refused = 0 if quarantine is None else quarantine.suspects.refused(model.clock.now())
        found = {"suspects": suspects, "refused": refused, "requestsRefused": model.metrics.refusals[LABEL]}
        document: dict[str, Any] = {"quarantine": found | {"crashesInARow": model.pool.crashes}}
        return document | ({"retryable": True} if refused and not model.lost else {})

    def samples(self) -> Samples:
        return ([((each.name, each.version), each.refusals[LABEL]) for each in self._counted.counted],)


def watch_for_suspects(model: ModelVersion) -> None:
    """Switch the quarantine of a version on or off, as its settings say; one with a dispatcher of its own has none."""
    quarantine = quarantine_of(model)
    if quarantine is None:
        if type(model.dispatcher) is not Dispatcher:
            return
        quarantine = Quarantine(
            model.clock, f"{model.name}/{model.version}",
            lambda job, sentence: model.reports.add("request-quarantined", sentence, requests=[job.id]),
        )  # fmt: skip
        model.dispatcher = dispatcher = model.path.dispatch_by(QuarantineDispatcher)
        dispatcher.watch_for_suspects(quarantine)
    quarantine.set(model.settings.quarantine)


def quarantine_of(model: ModelVersion) -> Quarantine | None:
    """Return the quarantine of a version; None where each request belongs to its worker, as those of sequences do."""
    return model.dispatcher.quarantine if isinstance(model.dispatcher, QuarantineDispatcher) else None
