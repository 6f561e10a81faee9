"""The autoscaling of all versions as a service of the daemon."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from tsctl.daemon.core.clock import Clock, Ticker
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.extension import Kernel, Samples, Service
from tsctl.daemon.extensions.scaling.autoscaler import Autoscaler
from tsctl.daemon.extensions.scaling.resources import WorkerRoom
from tsctl.daemon.extensions.scaling.rule import quiet_time
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
    decision = scaler.step(target, model.presence.least, model.presence.most, now, stateful=stateful)
    if decision.workers != wanted:
        model.reports.add("autoscaled", f"scaled from {wanted} to {decision.workers}: {decision.reason}")
    elif decision.blocked and not was_blocked:
        noun = "worker" if wanted == 1 else "workers"
        model.reports.note("autoscale-blocked", f"kept at {wanted} {noun}: {decision.reason}")


def autoscaling_of(model: ModelVersion, scaler: Autoscaler | None) -> dict[str, Any] | None:
    """The autoscaling of a version, as a document.

    targetQueueMs             the setting: how long requests may wait
    minWorkers, maxWorkers    the operator's range
    predictedWaitMs           how long requests are predicted to wait; null before the first decision
    reason                    of the latest decision, in words
    blocked                   whether another worker would help and cannot be added
    quietSeconds              for how long one worker less would have sufficed; null if it would not
    lastChange                by the rule: `at`, seconds since the epoch, `before`, `after`, `reason`; null for none
    takenAwayAfter            after so many quiet seconds one is taken away

    Return the present state of a version's autoscaling; None if it has no target.

    Args:
        scaler: the version's; None before the first look.
    """
    target = model.settings.target_queue
    if not target:
        return None
    now = model.clock.now()
    decision = None if scaler is None else scaler.decision
    quiet_since = None if scaler is None else scaler.quiet_since
    return {
        "targetQueueMs": round(target * 1000, 3),
        "minWorkers": model.presence.least,
        "maxWorkers": model.presence.most,
        "predictedWaitMs": None if decision is None else round(decision.wait * 1000, 3),
        "reason": "" if decision is None else decision.reason,
        "blocked": decision is not None and decision.blocked,
        "quietSeconds": None if quiet_since is None else round(now - quiet_since, 1),
        "lastChange": _last_change(scaler, now),
        "takenAwayAfter": quiet_time(() if scaler is None else tuple(scaler.history), now),
    }


def _last_change(scaler: Autoscaler | None, now: float) -> dict[str, Any] | None:
    if scaler is None or not scaler.history:
        return None
    change = scaler.history[-1]
    at = round(time.time() - (now - change.at), 3)
    return {"at": at, "before": change.before, "after": change.after, "reason": change.reason}


class ScalingService(Service):
    """The service."""

    def __init__(self, kernel: Kernel) -> None:
        self._registry = kernel.registry
        self._autoscaling = Autoscaling(kernel.registry, kernel.clock, kernel.gpus.now)

    def begin(self) -> None:
        self._autoscaling.begin()

    def close(self) -> None:
        self._autoscaling.close()

    def replacing(self, old: ModelVersion, new: ModelVersion) -> None:
        carry_over(old, new)

    def describe(self, model: ModelVersion) -> Mapping[str, Any]:
        return {"autoscaling": autoscaling_of(model, self._autoscaling.of(model))}

    def live(self, model: ModelVersion) -> Mapping[str, Any]:
        return self.describe(model)

    def samples(self) -> Samples:
        scaled = [((each.name, each.version), each) for each in self._registry if each.settings.target_queue]
        yield [(labels, each.settings.target_queue) for labels, each in scaled]
        yield [(labels, _predicted(self._autoscaling.of(each))) for labels, each in scaled]
        yield [(labels, each.presence.least) for labels, each in scaled]
        yield [(labels, each.presence.most) for labels, each in scaled]


def _predicted(scaler: Autoscaler | None) -> float:
    return 0.0 if scaler is None or scaler.decision is None else scaler.decision.wait
