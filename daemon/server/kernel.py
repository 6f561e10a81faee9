"""The kernel of a daemon: what the core offers its extensions."""

from collections.abc import Callable, Mapping
from functools import partial

from tsctl.daemon.api.inference.routes import inference_routes
from tsctl.daemon.api.inference.turns import Turns
from tsctl.daemon.api.metrics import selection_of
from tsctl.daemon.api.room import while_there_is_room
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.tokens import Tokens
from tsctl.daemon.core.client import Clients
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.machine.gpu import Gpus
from tsctl.daemon.extension import Kernel
from tsctl.daemon.http.messages import Request
from tsctl.daemon.http.router import Route
from tsctl.daemon.models.routing.steering import answering
from tsctl.daemon.server.bounds import Bounds
from tsctl.daemon.server.models import Models
from tsctl.daemon.server.observation import Observation


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
    answered: Callable[[Request, int, float], None],
    management: Callable[[], Mapping[str, Route]],
) -> Kernel:
    """Return the kernel.

    Args:
        serves: returns whether every model to be served from the start is registered or has failed, and the daemon is
            not stopping.
        clients, answered, management: as in `Kernel`.
    """
    registry, turns = models.registry, Turns(clock.now)
    ready = serves if config.ready_when_full else while_there_is_room(serves, partial(answering, registry))
    return Kernel(
        config, tokens, clients, clock,
        observation.events, observation.recurring, observation.metrics, selection_of(config),
        gpus, registry, models.registrar, ready, turns, bounds.receiving, bounds.send_budget,
        bounds.take, answered, inference_routes(registry, ready, turns), management, observation.soon,
        models.engine.spare, models.engine.templates,
    )  # fmt: skip
