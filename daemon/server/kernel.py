"""The kernel of a daemon: what the core offers its extensions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from tsctl.daemon.api.answered import AnsweredRequests
from tsctl.daemon.api.inference.routes import inference_routes
from tsctl.daemon.api.inference.turns import Turns
from tsctl.daemon.api.metrics import selection_of
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.tokens import Tokens
from tsctl.daemon.core.client import Clients
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.machine.gpu import Gpus
from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.http.router import Route
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.routing.steering import answering
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.server.bounds import Bounds
from tsctl.daemon.server.models import Models
from tsctl.daemon.server.observation import Observation


def has_room(model: ModelVersion) -> bool:
    """Return whether the queue of a version takes one more request of a byte."""
    queue = model.queue
    return model.waiting < queue.max_jobs and queue.bytes < queue.max_bytes


def while_there_is_room(
    started: Callable[[], bool], answering: Callable[[], Iterable[ModelVersion]]
) -> Callable[[], bool]:
    """Readiness that ends while a queue is full: `--no-ready-when-full`.

    A load balancer that asks for readiness then sends new requests to other daemons, which refuse none of them yet.

    Return a function that tells whether the daemon has started and the queue of each version has room.

    Args:
        answering: returns the versions that answer requests without a version.
    """
    return lambda: started() and all(map(has_room, answering()))


def kernel_of(
    config: Config,
    tokens: Tokens,
    clients: Clients | None,
    clock: Clock,
    observation: Observation,
    bounds: Bounds,
    gpus: Gpus,
    models: Models,
    serves: Callable[[], bool],
    requests: AnsweredRequests,
    management: Callable[[], Mapping[str, Route]],
) -> Kernel:
    """Return the kernel.

    Args:
        serves: returns whether every model to be served from the start is registered or has failed, and the daemon is
            not stopping.
        clients, requests, management: as in `Kernel`.
    """
    registry, turns = models.registry, Turns(clock.now)
    ready = serves if config.ready_when_full else while_there_is_room(serves, partial(answering, registry))
    return Kernel(
        config, tokens, clients, clock,
        observation.events, observation.recurring, observation.metrics, selection_of(config),
        gpus, registry, models.registrar, ready, turns, bounds.receiving, bounds.send_budget,
        bounds.take, requests, models.logs, inference_routes(registry, ready, turns), management, observation.soon,
        models.engine.spare, models.engine.templates,
    )  # fmt: skip


def installed(extensions: Sequence[Extension], kernel: Kernel) -> dict[str, Service]:
    """Return the services of one daemon by the names of their extensions, in order; of some there is none.

    Raises:
        StartError: what the configuration asks for cannot be done.
    """
    services = {each.name: service for each in extensions if (service := each.install(kernel)) is not None}
    for each in extensions:
        if each.name in services:
            services[each.name].metrics, services[each.name].needs = each.metrics, each.needs
    connect(kernel.registrar, services)
    return services


def connect(registrar: Registrar, services: Mapping[str, Service]) -> None:
    """Let what makes and keeps versions call these services, as far as they want it."""
    registrar.ledger.parts.services = {
        name: each for name, each in services.items() if type(each).keep is not Service.keep
    }
    factory = registrar.factory
    factory.dispatchers = [(each.__self__.needs, each) for each in _those_with("dispatcher", services)]
    factory.attached = [(each.__self__.needs, each) for each in _those_with("attach", services)]


def _those_with(name: str, services: Mapping[str, Service]) -> list[Any]:
    """Return a method of each service that has its own: the others do nothing, and cost nothing."""
    return [
        getattr(each, name) for each in services.values() if getattr(type(each), name) is not getattr(Service, name)
    ]
