"""The autoscaling of all versions as a service of the daemon."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tsctl.daemon.core.clock import Clock, Ticker
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.core.machine.processes import available, taken
from tsctl.daemon.declarations import DETAILED, Samples, VersionView
from tsctl.daemon.extension import Service
from tsctl.daemon.extensions.scaling.autoscaler import Autoscaler
from tsctl.daemon.extensions.scaling.facts import DeviceMemory
from tsctl.daemon.extensions.scaling.rule import memory_obstacle, quiet_time
from tsctl.daemon.models.registering.spec import places_of
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import local_pid
from tsctl.daemon.workers.pool import Pool

FRESH = 5.0  # seconds that a reading of GPUs counts, while the workers are the same …
BACKOFF = 60.0  # … and one that has told nothing: the driver may hang


class WorkerRoom:
    """The room for one more worker of one version.

    The host's memory is read at once, which blocks for milliseconds for each process of a worker. That of GPUs is read
    in another thread, once a decision needs it: NVML takes from 30 ms to seconds. Workers tell what they hold there.

    Args:
        gpus: returns GPU → what it tells (`Gpus.now`); blocks.
    """

    def __init__(self, clock: Clock, gpus: Callable[[], Mapping[int, Card]]) -> None:
        self._clock = clock
        self._gpus = gpus
        self._reading: Mapping[int, Card] | None = None
        self._of: tuple[object, ...] = ()  # the workers that were read
        self._until = 0.0
        self._asking = False

    def obstacle(self, pool: Pool) -> str | None:
        """Return why one more worker has no room; empty if it has, None while the GPUs are being read."""
        if crowded := pool.shortage_with(pool.wanted + 1):
            return crowded
        pids = [pid for pid in map(local_pid, pool.workers) if pid]
        if not pids:
            return ""
        if full := memory_obstacle([host_memory(pool, pids)]):
            return full
        if not pool.next_gpu_ids:
            return ""
        return self._on_gpus(pool, pids)

    def _on_gpus(self, pool: Pool, pids: Sequence[int]) -> str | None:
        of = (*pids, pool.ready)
        reading = self._reading if of == self._of else None
        fresh = reading is not None and self._clock.now() < self._until
        if not fresh and not self._asking:
            self._asking = True
            self._clock.aside(self._gpus, partial(self._note, of))
        if reading is None:
            return None
        full = memory_obstacle(list(gpu_memory(pool, reading)))
        return full if full or fresh else None  # an old reading is no reason to add a worker

    def _note(self, of: tuple[object, ...], reading: Mapping[int, Card]) -> None:
        self._reading, self._of, self._asking = reading, of, False
        self._until = self._clock.now() + (FRESH if reading else BACKOFF)


def host_memory(pool: Pool, pids: Sequence[int]) -> DeviceMemory:
    """Return the memory of the host, or of the cgroup that has less left."""
    least = min(available())
    loading = max(0, pool.wanted - pool.ready)
    return DeviceMemory(where=least.owner, takes=max(map(taken, pids)), left=least.left, loading=loading)


def gpu_memory(pool: Pool, reading: Mapping[int, Card]) -> Iterator[DeviceMemory]:
    """Yield the memory of each GPU that the next worker would get; of one that tells no numbers, none."""
    takes = max((size for worker in pool.workers for size in worker.gpu_memory.values()), default=0)
    for gpu in pool.next_gpu_ids:
        if gpu in reading:
            loading = sum(gpu in worker.gpu_ids and not worker.load_time for worker in pool.workers)
            yield DeviceMemory(where=f"GPU {gpu}", takes=takes, left=reading[gpu].free, loading=loading)


SAMPLED = 0.25  # seconds between samples of the queue …
DECIDED = 4  # … and so many samples between decisions


class ScalingService(Service):
    """Scales every registered version whose `targetQueueMs` is set.

    Args:
        loading: the replacements that are loading, and the version that each replaces (`LiveVersions.loading`).
        gpus: returns GPU → what it tells (`Gpus.now`); called in another thread.
    """

    def __init__(
        self, registry: Registry, loading: Mapping[ModelVersion, ModelVersion], clock: Clock,
        gpus: Callable[[], Mapping[int, Card]],
    ) -> None:  # fmt: skip
        self._registry, self._loading, self._clock, self._gpus = registry, loading, clock, gpus
        self._samples = 0
        self._scalers: dict[ModelVersion, Autoscaler] = {}
        self._ticker = Ticker(clock, SAMPLED, self._scale_all)

    def begin(self) -> None:
        self._ticker.begin()

    def close(self) -> None:
        self._ticker.close()

    def follow(self, model: ModelVersion) -> None:
        """Begin a replacement with the number of workers of the version before, whose traffic it gets."""
        if model in self._loading and model.settings.target_queue and model.pool.wanted and not model.pool.ready:
            model.presence.choose(self._loading[model].pool.wanted or model.pool.wanted)

    def fields(self, model: ModelVersion, view: VersionView) -> Mapping[str, Any]:
        return {"autoscaling": autoscaling_of(model, self.of(model))} if view in DETAILED else {}

    def samples(self) -> Samples:
        scaled = [((each.name, each.version), each) for each in self._registry if each.settings.target_queue]
        yield [(labels, each.settings.target_queue) for labels, each in scaled]
        yield [(labels, _predicted(self.of(each))) for labels, each in scaled]
        yield [(labels, each.presence.least) for labels, each in scaled]
        yield [(labels, each.presence.most) for labels, each in scaled]

    def of(self, model: ModelVersion) -> Autoscaler | None:
        """Return what scales a version; None without a target, and before the first look."""
        return self._scalers.get(model)

    def _scale_all(self) -> None:
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


def _predicted(scaler: Autoscaler | None) -> float:
    return 0.0 if scaler is None or scaler.decision is None else scaler.decision.wait
