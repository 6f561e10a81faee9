"""The mirrors of all models, made and closed as their routes change."""

from collections import Counter
from collections.abc import Iterable
from functools import partial

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.routing.route import Route
from tsctl.daemon.models.routing.steering import answering_of
from tsctl.daemon.models.shadowing.mirror import Mirror
from tsctl.daemon.models.version import ModelVersion


class Shadows:
    """Keeps `mirrors` and `copies` of the registry's routes."""

    def __init__(self, registry: Registry, clock: Clock, recurring: Recurring) -> None:
        self._registry = registry
        self._clock = clock
        self._recurring = recurring
        registry.routes.changed = self._changed

    def _changed(self, name: str, route: Route | None) -> None:
        mirrors = self._registry.routes.mirrors
        before = mirrors.get(name)
        if before is not None:
            mirrors.pop(name).close()
        for model in self._registry:
            if model.name == name:
                model.mirror = None  # the next request of the route brings the new one
        if route is None or not route.shadow:
            return
        version = route.shadow
        counts = self._registry.routes.copies.setdefault((name, version), Counter())
        mirrors[name] = Mirror(
            route, self._clock, self._registry.routes.random, partial(self._others, name),
            partial(self._find, name, version), counts, partial(self._note, name, version),
        )  # fmt: skip

    def _others(self, name: str) -> tuple[Iterable[ModelVersion], Iterable[ModelVersion]]:
        return self._registry, answering_of(self._registry, name)

    def _find(self, name: str, version: str) -> ModelVersion | None:
        return self._registry.find(name, version) if self._registry.holds(name, version) else None

    def _note(self, name: str, version: str, request: str, text: str) -> None:
        self._recurring.note("shadow-differed", text, model=name, version=version, request=request)
