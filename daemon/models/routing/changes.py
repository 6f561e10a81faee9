"""Changes of routes: checked, applied at once, and on the disk before the answer.

A change is atomic: requests are read one after the other, and each finds the route before the change or after it.
"""

from tsctl.daemon.core.errors import BadRequest, VersionNotFound
from tsctl.daemon.events.events import Events
from tsctl.daemon.models.persistence.ledger import Ledger
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.routing.route import Route


class RouteChanges:
    """Sets and removes the routes of models."""

    def __init__(self, registry: Registry, ledger: Ledger, events: Events) -> None:
        self._registry = registry
        self._ledger = ledger
        self._events = events

    def check(self, name: str, route: Route) -> None:
        """Check a route against the registered versions.

        Raises:
            ModelNotFound: no model has this name.
            VersionNotFound: the model has no such version.
            BadRequest: the shadow's requests may not be repeated, or this daemon has no shadows.
        """
        known = {model.version: model for model in self._registry.versions(name)}
        for version in route.versions:
            if version not in known:
                sentence = f"Model version {version} does not exist for model {name}; register it first."
                raise VersionNotFound(name, version, sentence)
        if route.shadow and self._registry.routes.copier is None:
            raise BadRequest("This daemon copies no requests: it was built without shadows.")
        if route.shadow and not (known[route.shadow].settings.retry or route.allow_effects):
            raise BadRequest(
                f"A shadow runs requests a second time, and {name}/{route.shadow} is not declared repeatable."
                " Set `retry: true` in its model-config.yaml, or allow effects: `--allow-effects`."
            )

    async def set(self, name: str, route: Route) -> None:
        """Set the route of a model; the version with the largest weight becomes its default.

        Raises:
            NotRemembered: the change is applied, but the snapshot could not be written.
            DaemonError: as `check`, or the model is reserved; nothing is changed.
        """
        self._registry.check_unreserved(name)
        self.check(name, route)
        self.apply(name, route)
        await self._ledger.save()

    def apply(self, name: str, route: Route) -> None:
        """Set the route of a model, as `set`, but unchecked, and leave the snapshot to the caller."""
        self._registry.routes.put(name, route)
        if self._registry.holds(name, route.main):
            self._ledger.choose_default(name, route.main)
        for model in self._registry.versions(name):
            if model.version in route.versions:
                self._ledger.unsettled.discard(model)  # the route, which is about to be answered, needs it
        self._events.add("route-changed", f"routed: {route}", model=name)

    async def remove(self, name: str) -> None:
        """Remove the route of a model, if it has one; its default version answers from now on.

        Raises:
            ModelNotFound: no model has this name.
            DaemonError: the model is reserved.
            NotRemembered: the change is applied, but the snapshot could not be written.
        """
        self._registry.check_unreserved(name)
        model = self._registry.find(name)
        if name not in self._registry.routes:
            return
        self._registry.routes.put(name, None)
        self._events.add("route-changed", f"the route was removed; {model.version} answers", model=name)
        await self._ledger.save()
