"""The services of extensions, made known to the parts of the core that call them."""

from collections.abc import Iterable, Mapping
from typing import Any

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
    registrar.ledger.parts.services = services
    registrar.factory.dispatchers = _those_with("dispatcher", services)
    registrar.factory.specified = _those_with("specify", services)
    registrar.factory.attached = _those_with("attach", services)
    registrar.replacing.begun = _those_with("replacing", services)
    registrar.leaving = _those_with("leaving", services)
    registry.reservations.services = _those_with("reserves", services)
    registry.forgetting = _those_with("forget", services)


def _those_with(name: str, services: Mapping[str, Service]) -> list[Any]:
    """Return a method of each service that has its own: the others do nothing, and cost nothing."""
    return [
        getattr(each, name) for each in services.values() if getattr(type(each), name) is not getattr(Service, name)
    ]
