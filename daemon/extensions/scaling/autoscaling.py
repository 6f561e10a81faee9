"""The autoscaling of all versions of a registry that have a target: one timer, which costs little without any."""

from collections.abc import Callable, Mapping

from tsctl.daemon.core.clock import Clock, Ticker
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.extensions.scaling.autoscaler import Autoscaler
from tsctl.daemon.extensions.scaling.resources import WorkerRoom
from tsctl.daemon.models.registering.spec import places_of
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion

SAMPLED = 0.25  # seconds between samples of the queue …
DECIDED = 4  # … and so many samples between decisions


class Autoscaling:
    """Scales every registered version whose `targetQueueMs` is set.

    Args:
        gpus: returns GPU → what it tells (`Gpus.now`); called in another thread.
    """

    def __init__(self, registry: Registry, clock: Clock, gpus: Callable[[], Mapping[int, Card]] = dict) -> None:
        self._registry = registry
        self._clock = clock
        self._gpus = gpus
        self._samples = 0
        self._scalers: dict[ModelVersion, Autoscaler] = {}
        self._ticker = Ticker(clock, SAMPLED, self._look)
        self.begin, self.close = self._ticker.begin, self._ticker.close

    def of(self, model: ModelVersion) -> Autoscaler | None:
        """Return what scales a version; None without a target, and before the first look."""
        return self._scalers.get(model)

    def _look(self) -> None:
        self._samples += 1
        now, decides = self._clock.now(), self._samples % DECIDED == 0
        scaled = [model for model in self._registry if model.settings.target_queue]
        self._scalers = {model: self._scalers.get(model) or self._autoscaler_of(model) for model in scaled}
        for model, scaler in self._scalers.items():
            scaler.sample(now)
            if decides and model.presence.present and not model.stopping and not model.being_replaced:
                _step(model, scaler, now)

    def _autoscaler_of(self, model: ModelVersion) -> Autoscaler:
        places = places_of(model.settings, model.dispatcher.share) if model.by_rows else 0
        room = WorkerRoom(self._clock, self._gpus)
        return Autoscaler(
            model.pool, model.traffic, lambda: model.waiting, places, obstacle=room.obstacle,
            choose=model.presence.choose,
        )  # fmt: skip


def carry_over(old: ModelVersion, new: ModelVersion) -> None:
    """Begin a replacement with the number of workers of the version before, whose traffic it gets."""
    if new.settings.target_queue and new.pool.wanted:
        new.presence.choose(old.pool.wanted or new.pool.wanted)


def _step(model: ModelVersion, scaler: Autoscaler, now: float) -> None:
    """Scale a version; add an event of a change, and one when a worker is wanted that cannot be added."""
    wanted, was_blocked = model.pool.wanted, scaler.decision is not None and scaler.decision.blocked
    stateful = model.dispatcher.remembered > 0
    target = model.settings.target_queue
    decision = scaler.step(target, model.min_workers, model.max_workers, now, stateful=stateful)
    if decision.workers != wanted:
        model.reports.add("autoscaled", f"scaled from {wanted} to {decision.workers}: {decision.reason}")
    elif decision.blocked and not was_blocked:
        noun = "worker" if wanted == 1 else "workers"
        model.reports.note("autoscale-blocked", f"kept at {wanted} {noun}: {decision.reason}")
