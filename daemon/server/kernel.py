"""The kernel of a daemon: what the core offers its extensions."""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from tsctl.daemon.api.inference.turns import Turns
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.tokens import Tokens
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.machine.gpu import Gpus
from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.routing.steering import answering
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.server.bounds import Bounds
from tsctl.daemon.server.fields import Fields
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
    clock: Clock,
    observation: Observation,
    bounds: Bounds,
    gpus: Gpus,
    models: Models,
    serves: Callable[[], bool],
) -> Kernel:
    """Return the kernel.

    Args:
        serves: returns whether every model to be served from the start is registered or has failed, and the daemon is
            not stopping.
    """
    registry, engine = models.registry, models.engine
    ready = serves if config.ready_when_full else while_there_is_room(serves, partial(answering, registry))
    return Kernel(
        config, tokens, clock, observation, bounds, gpus, registry, models.registrar, ready, Turns(clock.now),
        engine.spare, Fields(clock, time.time()), engine.templates,
    )  # fmt: skip


def installed(extensions: Sequence[Extension], kernel: Kernel) -> list[Service]:
    """Return the services of one daemon, in order; some extensions have none.

    Raises:
        StartError: what the configuration asks for cannot be done.
    """
    services = []
    for extension in extensions:
        if (service := extension.install(kernel)) is not None:
            service.extension = extension
            services.append(service)
    connect(kernel.registrar, services)
    return services


def connect(registrar: Registrar, services: Sequence[Service]) -> None:
    """Let services follow the versions that are made, and keep parts of the snapshot, as far as each has a member."""
    following = [each for each in services if type(each).follow is not Service.follow]
    registrar.factory.following = [(each.extension.needs, each.follow) for each in following]
    keeping = [each for each in services if type(each).keep is not Service.keep]
    registrar.ledger.parts.services = {each.extension.name: each for each in keeping}
