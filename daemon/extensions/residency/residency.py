"""Applies the decision on which versions are in memory, whenever something has changed, and when it is time."""

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.errors import NoReadyWorker
from tsctl.daemon.extension import Service
from tsctl.daemon.extensions.residency.decision import IDLE, Memory, ResidencePlan, VersionFacts, decide, total
from tsctl.daemon.extensions.residency.residence import Residence, has_work, is_movable, keep_alive_of, residence_of
from tsctl.daemon.extensions.residency.state import ResidenceState
from tsctl.daemon.marfile import Manifest
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.setting_values import parse_size, size_text, span_text

MEASURE_AGAIN = 30.0  # seconds after which a version that was used since is measured again, if there is a budget
MOST_FILES = 10_000  # files whose sizes are added up for the estimate before the first load
# Bytes on a GPU of a process that uses torch there, beside its tensors: measured on an H100 with driver 580 and CUDA 13
# after the first kernels. Other cards take less.
CONTEXT = 620 * 2**20


class MemoryBudgetExceeded(NoReadyWorker):
    """The budget of memory leaves no room for the version."""

    retry_after = 30


class FirstLoad(NamedTuple):
    """The bytes that a version is expected to take before it was ever loaded: on the host, and a worker's on a GPU."""

    host: int
    gpu: int


def first_load(directory: Path, manifest: Manifest, gpus: int = 1) -> FirstLoad:
    """Estimate the memory of the first load: the weights are most of it.

    Args:
        directory: the version's files: their sizes are the estimate for the host, and for the weights where the
            manifest names no file of weights.
        gpus: how many GPUs share the weights.
    """
    files, weights = _size_of(directory), 0
    if manifest.serialized_file:
        with contextlib.suppress(OSError):
            weights = (directory / Path(manifest.serialized_file).name).stat().st_size
    return FirstLoad(files, (weights or files) // gpus + CONTEXT)


class WarmTemplates(Protocol):
    """The templates that keep the weights of unloaded versions mapped."""

    def pid_of(self, name: str, version: str) -> int:
        """Return the process id of a version's template; 0 if it has none."""

    def keep(self, name: str, version: str, seconds: float) -> None:
        """Keep a version's template, if it has one, for so long after its last worker."""


class _NoTemplates:
    def pid_of(self, name: str, version: str) -> int:  # noqa: ARG002
        return 0

    def keep(self, name: str, version: str, seconds: float) -> None:
        """Do nothing: there is none."""


def limits_of(budget: str | None, gpus: int = 0) -> dict[str, int]:
    """Return the limit of each device from the setting `models_memory`: `host=16GiB,gpu=20GiB`, each GPU alike."""
    sizes = {} if budget is None else {name: parse_size(size) for name, size in _pairs(budget)}
    limits = {"host": sizes["host"]} if "host" in sizes else {}
    return limits | {f"gpu{index}": sizes["gpu"] for index in range(gpus if "gpu" in sizes else 0)}


def _pairs(budget: str) -> Iterable[tuple[str, str]]:
    for part in budget.split(","):
        name, _, size = part.partition("=")
        yield name, size


class Residency(Service):
    """Loads and unloads versions.

    Args:
        versions: all that are registered, loading or leaving, each once, each time it is iterated over.
        limits: device → bytes of all versions (`limits_of`); a missing device has no limit.

    Attributes:
        templates: of the engine; without them nothing is warm.
        meter: returns the bytes that processes take, by device; called in another thread. None to measure nothing.
        limits: as given.
    """

    def __init__(self, versions: Iterable[ModelVersion], clock: Clock, limits: Mapping[str, int]) -> None:
        self.limits = limits
        self.templates: WarmTemplates = _NoTemplates()
        self.meter: Callable[[Sequence[int]], Memory] | None = None
        self._versions = versions
        self._clock = clock
        self._timer: Timer | None = None
        self._soon = False
        self._estimates: dict[ModelVersion, FirstLoad] = {}
        self._blocked_since: dict[ModelVersion, float] = {}
        self._known: set[ModelVersion] = set()
        self._measured: dict[ModelVersion, float] = {}  # when, for versions that are in memory

    def __repr__(self) -> str:
        loaded = sum(residence_of(model).state is ResidenceState.LOADED for model in self._versions)
        return f"<Residency {loaded} loaded, {len(self._blocked_since)} wait for room>"

    def follow(self, model: ModelVersion) -> None:
        """Let a version be loaded and unloaded, as its settings say."""
        if isinstance(model.presence, Residence):
            model.presence.follow_settings()
        else:
            model.presence = Residence(model, self.reconsider)

    def reconsider(self) -> None:
        """Decide in this turn of the loop: something has changed."""
        if not self._soon:
            self._soon = True
            self._clock.soon(self._decide)

    def _decide(self) -> None:
        self._soon = False
        now = self._clock.now()
        models = list(self._versions)
        self._forget(models)
        plan = self._plan(models, now)
        for model, device in plan.refuse:
            self._refuse(model, f"its {self._needs(model, device)} do not fit: the models that stay leave no room")
        for model, reason in plan.unload:
            self._unload(model, reason)
        for model in plan.cool:
            residence_of(model).warm = 0
            self.templates.keep(model.name, model.version, 0.0)
            self.reconsider()  # the room is free
        for model in plan.load:
            model.reports.add("loading", "a request came")
            residence_of(model).resume("a request came", "request")
        self._note_blocked(plan, now)
        self._measure(models, now)
        if self._timer is not None:
            self._timer.cancel()
        wait = plan.wake_at - now
        self._timer = None if wait == math.inf else self._clock.later(max(0.0, wait), self._decide)

    def _plan(self, models: Sequence[ModelVersion], now: float) -> ResidencePlan[ModelVersion]:
        if not self.limits and not any(map(_moves, models)):
            return ResidencePlan()  # nothing comes or goes: so it is in most daemons
        return decide([self._facts(model, now) for model in models if _matters(model)], self.limits, now)

    def _facts(self, model: ModelVersion, now: float) -> VersionFacts[ModelVersion]:
        residence = residence_of(model)
        if residence.asked is not None and not model.queue.waiting:
            residence.forget_asked()  # the clients have left, or had no time left
        if residence.warm and not self.templates.pid_of(model.name, model.version):
            residence.warm = 0
        model.dispatcher.forget(now)
        return VersionFacts(
            version=model,
            state=_state_of(model),
            movable=is_movable(model),
            has_work=has_work(model),
            asked=residence.asked,
            loaded_at=residence.loaded_at,
            used=model.path.used_at,
            keep_alive=keep_alive_of(model),
            memory=self._memory_of(model),
            warm=residence.warm,
        )

    def _unload(self, model: ModelVersion, reason: str) -> None:
        idle = span_text(round(model.settings.keep_alive or 0))
        why = f"idle for {idle}" if reason == IDLE else "others needed the memory"
        model.reports.add("unloaded", f"unloaded: {why}")
        # Its weights stay mapped for as long again, unless others need the memory.
        self.templates.keep(model.name, model.version, model.settings.keep_alive if reason == IDLE else 0.0)
        residence_of(model).unload(why, reason)
        residence_of(model).warm = 0
        pid = self.templates.pid_of(model.name, model.version)
        if reason == IDLE and pid and self.meter is not None:
            self._clock.aside(partial(self.meter, [pid]), partial(_note_warm, model))

    def _refuse(self, model: ModelVersion, why: str) -> None:
        residence_of(model).forget_asked()
        model.dispatcher.refuse_all(MemoryBudgetExceeded(f'Model "{model.name}" cannot be loaded: {why}.'))

    def _needs(self, model: ModelVersion, device: str) -> str:
        memory = self._memory_of(model)
        return f"{size_text(memory.get(device, 0))} of {size_text(self.limits[device])} on {device}"

    def _note_blocked(self, plan: ResidencePlan[ModelVersion], now: float) -> None:
        """Refuse those that have waited for room as long as a load may take."""
        for model in list(self._blocked_since):
            if model not in plan.blocked:
                del self._blocked_since[model]
        for model in plan.blocked:
            since = self._blocked_since.setdefault(model, now)
            if now - since >= model.settings.startup_timeout:
                del self._blocked_since[model]
                self._refuse(model, "no other model became idle, to make room for it")

    def _measure(self, models: Iterable[ModelVersion], now: float) -> None:
        if self.meter is None:
            return
        for model in models:
            if residence_of(model).state is not ResidenceState.LOADED:
                self._measured.pop(model, None)
                continue
            last = self._measured.get(model)
            if last is not None and (not self.limits or now - last < MEASURE_AGAIN):
                continue
            self._measured[model] = now
            pids = [worker.pid for worker in model.pool.workers if not worker.node]
            pids.append(self.templates.pid_of(model.name, model.version))
            self._clock.aside(partial(self.meter, pids), partial(self._note_memory, model))

    def _note_memory(self, model: ModelVersion, memory: Memory) -> None:
        if memory.get("host") and residence_of(model).state is ResidenceState.LOADED:
            residence_of(model).memory = self._on_gpus(model) | dict(memory)
            if self.limits:
                self.reconsider()

    def used(self) -> dict[str, int]:
        """Return the bytes that all versions take now, by device; those that are loading count as expected."""
        return total(
            VersionFacts(
                version=model,
                state=_state_of(model),
                memory=self._memory_of(model),
                warm=residence_of(model).warm,
            ).takes
            for model in self._versions
            if _matters(model)
        )

    def _memory_of(self, model: ModelVersion) -> Memory:
        """Return the bytes as measured, else as estimated; on GPUs, where the workers are or would be."""
        measured = residence_of(model).memory or {"host": self._estimate(model).host}
        return self._on_gpus(model) | {"host": measured.get("host", 0)}

    def _on_gpus(self, model: ModelVersion) -> dict[str, int]:
        """Return the bytes on each GPU: as the workers tell, and for others as much as they do, else as before."""
        pool, residence = model.pool, residence_of(model)
        if not pool.spec.devices:
            return {}
        places = pool.gpus_of(max(1, residence.least))
        told = [size for worker in pool.workers for size in worker.gpu_memory.values()]
        before = [size for device, size in residence.memory.items() if device != "host"]
        if told:
            each = max(told)
        else:
            each = sum(before) // max(1, sum(places.values())) if before else self._estimate(model).gpu
        if not pool.workers:
            return {f"gpu{gpu}": count * each for gpu, count in places.items()}
        holding = [worker.gpu_memory or dict.fromkeys(worker.gpu_ids, each) for worker in pool.workers]
        return {f"gpu{gpu}": sum(held.get(gpu, 0) for held in holding) for gpu in places}

    def _estimate(self, model: ModelVersion) -> "FirstLoad":
        """Return what the first load is expected to take; nothing without a budget."""
        if not self.limits:
            return FirstLoad(0, 0)
        if model not in self._estimates:
            self._estimates[model] = first_load(
                model.source.directory, model.source.manifest, model.pool.spec.gpus_each
            )
        return self._estimates[model]

    def _forget(self, models: Iterable[ModelVersion]) -> None:
        present = set(models)
        names = {(model.name, model.version) for model in models}
        for model in self._known - present:
            for table in (self._estimates, self._blocked_since, self._measured):
                table.pop(model, None)
            if (model.name, model.version) not in names:  # else another archive of this name may have one
                self.templates.keep(model.name, model.version, 0.0)
        self._known = present


def _moves(model: ModelVersion) -> bool:
    """Return whether a version may be loaded or unloaded, or takes memory while it is unloaded."""
    residence = residence_of(model)
    return residence.on_demand or residence.asked is not None or residence.warm > 0


def _matters(model: ModelVersion) -> bool:
    """Return whether a version takes memory, or is asked for: of hundreds of registered ones few do.

    One that has been retired does neither, though a daemon that stops keeps it registered.
    """
    residence = residence_of(model)
    if residence.retired:
        return False
    absent = residence.state is ResidenceState.UNLOADED or residence.state is ResidenceState.HELD
    return not absent or residence.asked is not None or residence.warm > 0 or not model.pool.empty


def _state_of(model: ModelVersion) -> ResidenceState:
    """Return the state; UNLOADING while a version that an operator unloads, or that is retired, still has workers."""
    residence = residence_of(model)
    held = residence.state is ResidenceState.HELD
    leaving = (held and not model.pool.empty) or (model.stopping and residence.present)
    return ResidenceState.UNLOADING if leaving else residence.state


def _note_warm(model: ModelVersion, memory: Memory) -> None:
    if not residence_of(model).present:
        residence_of(model).warm = memory.get("host", 0)


def _size_of(directory: Path) -> int:
    total = count = 0
    for folder, _, names in os.walk(directory):
        for name in names[: MOST_FILES - count]:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(folder, name)).st_size
        count += len(names)
    return total
