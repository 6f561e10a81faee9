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
    """Let the registry, and what makes, replaces and keeps versions, call these services, as far as they want it."""
    called, factory = services.values(), registrar.factory
    registrar.ledger.parts.services = services
    factory.dispatchers = [each.dispatcher for each in called if type(each).dispatcher is not Service.dispatcher]
    factory.attached = [each.attach for each in called if type(each).attach is not Service.attach]
    registrar.replacing.begun = [each.replacing for each in called if type(each).replacing is not Service.replacing]
    registrar.leaving = [each.leaving for each in called if type(each).leaving is not Service.leaving]
    registry.reservations.services = [each.reserves for each in called if type(each).reserves is not Service.reserves]
    registry.forgetting = [each.forget for each in called if type(each).forget is not Service.forget]
