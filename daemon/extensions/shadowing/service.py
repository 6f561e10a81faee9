"""The mirrors of all models as a service: made and closed as the routes of the models change."""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from tsctl.daemon.extension import Kernel, Samples, Service
from tsctl.daemon.extensions.shadowing.mirror import Mirror
from tsctl.daemon.models.routing.route import Route
from tsctl.daemon.models.routing.routes import RESULTS
from tsctl.daemon.models.routing.steering import answering_of
from tsctl.daemon.models.version import ModelVersion


class ShadowingService(Service):
    """The service."""

    def __init__(self, kernel: Kernel) -> None:
        self._registry, self._live = kernel.registry, kernel.registrar.live
        self._clock, self._recurring = kernel.clock, kernel.recurring
        self._mirrors: dict[str, Mirror] = {}
        kernel.registry.routes.copier = self._follow

    def attach(self, model: ModelVersion) -> None:
        mirror = self._mirrors.get(model.name)
        if mirror is not None:
            model.watchers = (mirror, *model.watchers)

    def describe(self, model: ModelVersion) -> Mapping[str, Any]:
        route = self._registry.routes.of(model.name)
        if route is None or not route.shadow:
            return {}
        counts = self._registry.routes.copies.get((model.name, route.shadow), Counter())
        return {"copies": {result: counts[result] for result in RESULTS}}

    def samples(self) -> Samples:
        copies = self._registry.routes.copies
        return ([((*names, result), counts[result]) for names, counts in copies.items() for result in RESULTS],)

    def _follow(self, name: str, route: Route | None) -> None:
        """Copy the requests of a model as its route says from now on."""
        before = self._mirrors.pop(name, None)
        versions = [model for model in self._live if model.name == name]
        if before is not None:
            before.close()
            for model in versions:
                model.watchers = tuple(each for each in model.watchers if each is not before)
        if route is None or not route.shadow:
            return
        version = route.shadow
        counts = self._registry.routes.copies.setdefault((name, version), Counter())
        self._mirrors[name] = Mirror(
            route, self._clock, self._registry.routes.random, partial(self._others, name),
            partial(self._find, name, version), counts, partial(self._note, name, version),
        )  # fmt: skip
        for model in versions:
            self.attach(model)

    def _others(self, name: str) -> tuple[Iterable[ModelVersion], Iterable[ModelVersion]]:
        return self._registry, answering_of(self._registry, name)

    def _find(self, name: str, version: str) -> ModelVersion | None:
        return self._registry.find(name, version) if self._registry.holds(name, version) else None

    def _note(self, name: str, version: str, request: str, text: str) -> None:
        self._recurring.note("shadow-differed", text, model=name, version=version, request=request)
