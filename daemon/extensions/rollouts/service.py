"""The rollouts of all models as a service of the daemon."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from tsctl.daemon.api.management.commands import model_route
from tsctl.daemon.api.openapi import Operation
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.rollouts.rollout import Rollout, is_possible
from tsctl.daemon.extensions.rollouts.rollouts import Rollouts
from tsctl.daemon.extensions.rollouts.route import ROLLOUT, answer_rollout, rollout_document, rollout_operations
from tsctl.daemon.http.router import Audience, Route
from tsctl.daemon.models.version import ModelVersion


class RolloutsService(Service):
    """The service.

    Attributes:
        rollouts: of all models.
    """

    def __init__(self, kernel: Kernel) -> None:
        registrar = kernel.registrar
        self.rollouts = Rollouts(
            kernel.registry, registrar.routes, registrar.ledger, registrar.gate, kernel.clock, kernel.observation.events
        )
        answer = partial(answer_rollout, kernel.registry, self.rollouts)
        self._route = model_route(registrar, ROLLOUT, answer, commands=True)

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        return {f"models/*/{ROLLOUT}": self._route} if audience is Audience.MANAGERS else {}

    def operations(self) -> Mapping[str, Mapping[str, Operation]]:
        return rollout_operations()

    def fields(self, model: ModelVersion, view: VersionView) -> Mapping[str, Any]:
        """Return where a rollout is; in lists, of the new version of one that is going on, and live its evidence."""
        if view in (VersionView.MEMBERS, VersionView.WORKER):
            return {}
        rollout = self.rollouts.by_model.get(model.name)
        if rollout is None or model.version not in rollout.versions:
            return {}
        if view is VersionView.DESCRIPTION:
            return {"rollout": {"version": rollout.version, "state": rollout.state.value, "share": rollout.share}}
        if model.version != rollout.version:
            return {}
        progress = {"rollout": rollout.progress} if rollout.going_on else {}
        if view is VersionView.LIST:
            return progress
        return progress | {"evidence": rollout_document(self.rollouts, model.name)["rollout"]}

    def forget(self, gone: Callable[[str], bool]) -> None:
        self.rollouts.forget(gone)

    def keep(self, *, last: bool) -> Mapping[str, Any] | None:
        if last:
            self.rollouts.keep_samples()
        return dict(self.rollouts.by_model) or None

    def restore(self, kept: Any) -> None:
        rollouts = msgspec.convert(kept, dict[str, Rollout])
        for name, rollout in rollouts.items():
            if not is_possible(rollout):
                raise ValueError(f"the rollout of {name} has impossible values")
        self.rollouts.restore(rollouts)

    def begin(self) -> None:
        self.rollouts.begin()

    async def settle(self, *, replaced: bool) -> None:
        if not replaced:  # else the other daemon has them
            await self.rollouts.remember()
        self.rollouts.close()
