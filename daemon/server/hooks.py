"""The services of extensions, made known to the parts of the core that call them."""

from collections.abc import Iterable, Mapping

from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.registry import Registry


def installed(extensions: Iterable[Extension], kernel: Kernel) -> dict[str, Service]:
    """Return the services of one daemon by the names of their extensions, in order; of some there is none.

    Raises:
        StartError: what the configuration asks for cannot be done.
    """
    services = {each.name: service for each in extensions if (service := each.install(kernel)) is not None}
    connect(kernel.registry, kernel.registrar, services)
    return services


def connect(registry: Registry, registrar: Registrar, services: Mapping[str, Service]) -> None:
    """Let the registry and what changes it call these services."""
    registrar.ledger.parts.services = services
    registrar.factory.attached = [each.attach for each in services.values()]
    registrar.replacing.begun = [each.replacing for each in services.values()]
    registrar.leaving = [each.leaving for each in services.values()]
    registry.reservations.services = [each.reserves for each in services.values()]
    registry.forgetting = [each.forget for each in services.values()]
