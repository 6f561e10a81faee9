"""The rollouts of all models as a service of the daemon."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tsctl.daemon.api.openapi import Operation
from tsctl.daemon.extension import Audience, Kernel, Service
from tsctl.daemon.extensions.rollouts.rollout import Rollout, is_possible
from tsctl.daemon.extensions.rollouts.rollouts import Rollouts
from tsctl.daemon.extensions.rollouts.route import ROLLOUT, RolloutRoute, rollout_document, rollout_operations
from tsctl.daemon.http.router import Route
from tsctl.daemon.models.version import ModelVersion


class RolloutsService(Service):
    """The service.

    Attributes:
        rollouts: of all models.
    """

    def __init__(self, kernel: Kernel) -> None:
        registrar = kernel.registrar
        self.rollouts = Rollouts(
            kernel.registry, registrar.routes, registrar.ledger, registrar.gate, kernel.clock, kernel.events
        )
        self._route = RolloutRoute(kernel.registry, registrar, self.rollouts)
        registrar.leaving.append(self.rollouts.leave)
        kernel.registry.forgetting.append(self.rollouts.forget)

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        return {f"models/*/{ROLLOUT}": self._route} if audience is Audience.MANAGERS else {}

    def operations(self) -> Mapping[str, Mapping[str, Operation]]:
        return rollout_operations()

    def describe(self, model: ModelVersion) -> Mapping[str, Any]:
        rollout = self.rollouts.by_model.get(model.name)
        if rollout is None or model.version not in rollout.versions:
            return {}
        return {"rollout": {"version": rollout.version, "state": rollout.state.value, "share": rollout.share}}

    def listed(self, model: ModelVersion) -> Mapping[str, Any]:
        """Return the progress of the new version of a rollout that is going on."""
        rollout = self.rollouts.by_model.get(model.name)
        if rollout is None or not rollout.going_on or rollout.version != model.version:
            return {}
        return {"rollout": rollout.progress}

    def live(self, model: ModelVersion) -> Mapping[str, Any]:
        """Return the evidence of the new version of the last rollout: the document of `tsctl rollout`."""
        rollout = self.rollouts.by_model.get(model.name)
        if rollout is None or rollout.version != model.version:
            return {}
        return {"evidence": rollout_document(self.rollouts, model.name)["rollout"]}

    def keep(self, *, last: bool) -> Mapping[str, Any] | None:
        if last:
            self.rollouts.keep_samples()
        return dict(self.rollouts.by_model) or None

    def restore(self, kept: Any) -> None:
        try:
            rollouts = msgspec.convert(kept, dict[str, Rollout])
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
        for name, rollout in rollouts.items():
            if not is_possible(rollout):
                raise ValueError(f"the rollout of {name} has impossible values")
        self.rollouts.restore(rollouts)

    def serve(self) -> None:
        self.rollouts.begin()

    async def settle(self, *, replaced: bool) -> None:
        if not replaced:  # else the other daemon has them
            await self.rollouts.remember()
        self.rollouts.close()

    async def leave(self, grace: float) -> None:
        del grace
        self.rollouts.close()  # again: a client may have started one meanwhile
