"""The rollouts of all models as clients see them: their route, and fields of a version's documents."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from tsctl.daemon.api.management.commands import ModelRoute
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.extension import Kernel
from tsctl.daemon.extensions.rollouts.rollouts import Rollouts
from tsctl.daemon.extensions.rollouts.route import ROLLOUT, answer_rollout, rollout_document
from tsctl.daemon.http.router import Audience, Route
from tsctl.daemon.models.version import ModelVersion


class RolloutsService(Rollouts):
    """The rollouts of all models with their route."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        answer = partial(answer_rollout, kernel.registry, self)
        self._route = ModelRoute(kernel.registrar, ROLLOUT, answer, commands=True)

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        return {f"models/*/{ROLLOUT}": self._route} if audience is Audience.MANAGERS else {}

    def fields(self, model: ModelVersion, view: VersionView) -> Mapping[str, Any]:
        """Return where a rollout is; in lists, of the new version of one that is going on, and live its evidence."""
        if view in (VersionView.MEMBERS, VersionView.WORKER):
            return {}
        rollout = self.by_model.get(model.name)
        if rollout is None or model.version not in rollout.versions:
            return {}
        if view is VersionView.DESCRIPTION:
            return {"rollout": {"version": rollout.version, "state": rollout.state.value, "share": rollout.share}}
        if model.version != rollout.version:
            return {}
        progress = {"rollout": rollout.progress} if rollout.going_on else {}
        if view is VersionView.LIST:
            return progress
        return progress | {"evidence": rollout_document(self, model.name)["rollout"]}
