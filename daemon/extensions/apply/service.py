"""The daemon's part of `tsctl apply`: the route of the registrations."""

from collections.abc import Mapping

from tsctl.daemon.extension import Service
from tsctl.daemon.extensions.registrations.document import registrations_routes
from tsctl.daemon.http.router import Audience, Route
from tsctl.daemon.models.persistence.ledger import Ledger
from tsctl.daemon.models.registry import Registry


class ApplyService(Service):
    def __init__(self, registry: Registry, ledger: Ledger) -> None:
        self._routes = registrations_routes(registry, ledger)

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        return self._routes if audience is Audience.OPERATORS else {}
