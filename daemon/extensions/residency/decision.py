"""Decide which versions are loaded and unloaded now; a pure function of the facts and the time.

Loads, in the order in which their requests came:

    room   two loads in progress   what happens
    yes    no                      the version is loaded
    yes    yes                     it waits for the end of a load
    no     -                       first the templates of unloaded versions go, then loaded versions, the least recently
                                   used first: as many as are needed, none if all together would not be enough
    never  -                       refused: what may not be unloaded leaves no room for it

Only a version that is loaded on demand, is not pinned and has no work may be unloaded; to make room, only one that has
been loaded for `YOUNG` seconds, else two models that are asked for in turn would do nothing but load. While the first
in line waits for room, a later one may take room that is free, if the first can still be served when the versions
that hold the rest of the room become idle and old enough.

A device is `host` or `gpu0`, `gpu1` …; a device without a limit has room for everything.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tsctl.daemon.extensions.residency.state import ResidenceState

LOADS_AT_ONCE = 2
YOUNG = 30.0  # seconds
LOOK_EVERY = 1.0  # seconds: the end of a version's work is seen by looking again
IDLE, ROOM = "idle", "room"  # reasons of an unloading

Memory = Mapping[str, int]  # device → bytes
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFacts(Generic[V]):
    """One version, as the decision sees it; times are on one clock.

    Attributes:
        state: its residence.
        movable: whether unloading is allowed at all: loaded on demand, not pinned, not leaving.
        has_work: a request waits or runs, or a sequence is open.
        asked: when the first request came that waits for a load; None if none does.
        loaded_at: when its last load was done.
        used: when the last request came or was answered.
        keep_alive: seconds loaded without work; inf for always.
        memory: bytes taken or, unloaded, needed; with its template.
        warm: bytes on the host that its template keeps while unloaded.
    """

    version: V
    state: ResidenceState
    movable: bool = False
    has_work: bool = False
    asked: float | None = None
    loaded_at: float = -math.inf
    used: float = -math.inf
    keep_alive: float = math.inf
    memory: Memory = field(default_factory=dict)
    warm: int = 0

    @property
    def takes(self) -> Memory:
        """Bytes that the version takes now."""
        if self.state in (ResidenceState.UNLOADED, ResidenceState.HELD, ResidenceState.FAILED):
            return {"host": self.warm}
        return self.memory

    @property
    def idle_at(self) -> float:
        """When the version will have been idle for its keep-alive; inf if it may not be unloaded, or has work."""
        if self.state is not ResidenceState.LOADED or not self.movable or self.has_work:
            return math.inf
        return max(self.used, self.loaded_at) + self.keep_alive


@dataclass(slots=True)
class ResidencePlan(Generic[V]):
    """The actions of a decision.

    Attributes:
        load: to be loaded.
        unload: to be unloaded, with the reason.
        cool: unloaded versions whose template is to go.
        refuse: waiting requests cannot be served, with the bytes that are missing at least.
        blocked: versions that wait for room.
        wake_at: when to decide again if nothing changes before; inf for never.
    """

    load: list[V] = field(default_factory=list)
    unload: list[tuple[V, str]] = field(default_factory=list)
    cool: list[V] = field(default_factory=list)
    refuse: list[tuple[V, str]] = field(default_factory=list)
    blocked: list[V] = field(default_factory=list)
    wake_at: float = math.inf


def decide(versions: Sequence[VersionFacts[V]], limits: Memory, now: float) -> ResidencePlan[V]:
    """Decide.

    Args:
        versions: all that are registered, loading or leaving, each once.
        limits: device → bytes of all models; devices without a limit are missing.
        now: the time, on the clock of the facts.
    """
    plan: ResidencePlan[V] = ResidencePlan()
    ledger = _Ledger(versions, limits)
    for each in versions:
        if each.idle_at <= now:
            plan.unload.append((each.version, IDLE))
            ledger.leave(each)
        else:
            plan.wake_at = min(plan.wake_at, each.idle_at, _look_again(each, now))
    _load(plan, ledger, versions, now)
    ledger.make_room(None, now, plan)  # measured sizes may be more than was expected
    return plan


def _look_again(each: VersionFacts[V], now: float) -> float:
    """Return when to see whether a version with work has become idle; inf for any other."""
    if each.state is not ResidenceState.LOADED or not each.movable or not each.has_work:
        return math.inf
    return now + max(each.keep_alive, LOOK_EVERY)


def _load(plan: ResidencePlan[V], ledger: "_Ledger[V]", versions: Sequence[VersionFacts[V]], now: float) -> None:
    waiting = [each for each in versions if each.asked is not None and each.state is ResidenceState.UNLOADED]
    free = LOADS_AT_ONCE - sum(each.state is ResidenceState.LOADING and each.movable for each in versions)
    for each in sorted(waiting, key=lambda one: one.asked or 0.0):
        device = ledger.never_fits(each)
        if device is not None:
            plan.refuse.append((each.version, device))
        elif free <= 0:
            return  # the end of a load is a change, which decides again
        elif ledger.fits(each) and (not plan.blocked or ledger.leaves_enough(each)):
            plan.load.append(each.version)
            ledger.load(each)
            free -= 1
        else:
            if not plan.blocked:
                ledger.make_room(each, now, plan)
            plan.blocked.append(each.version)
            plan.wake_at = min(plan.wake_at, now + LOOK_EVERY)
            ledger.reserve(each)


class _Ledger(Generic[V]):
    """Bytes on each device while a plan is made."""

    def __init__(self, versions: Sequence[VersionFacts[V]], limits: Memory) -> None:
        self._limits = limits
        self._versions = versions
        self._used = total(each.takes for each in versions)
        self._leaving = total(each.memory for each in versions if each.state is ResidenceState.UNLOADING)
        self._fixed = total(each.takes for each in versions if not self._goes(each))
        self._reserved: dict[str, int] = {}
        self._gone: set[V] = set()

    @staticmethod
    def _goes(each: VersionFacts[V]) -> bool:
        """Whether a version's memory comes free in time, if only it becomes idle and old enough."""
        if each.state in (ResidenceState.LOADING, ResidenceState.LOADED):
            return each.movable
        return True

    def never_fits(self, each: VersionFacts[V]) -> str | None:
        """Return a device where the version does not fit even when everything that may go has gone; else None."""
        for device, limit in self._limits.items():
            if each.memory.get(device, 0) + self._fixed.get(device, 0) > limit:
                return device
        return None

    def fits(self, each: VersionFacts[V]) -> bool:
        return self._missing(each.memory, each.warm) == {}

    def leaves_enough(self, each: VersionFacts[V]) -> bool:
        """Whether those that wait for room can still be served later, if this version is loaded now."""
        return all(
            self._fixed.get(device, 0) + self._reserved.get(device, 0) + each.memory.get(device, 0) <= limit
            for device, limit in self._limits.items()
        )

    def load(self, each: VersionFacts[V]) -> None:
        self._used = total((self._used, each.memory))
        self._used["host"] -= each.warm
        if not each.movable:
            self._fixed = total((self._fixed, each.memory))

    def leave(self, each: VersionFacts[V]) -> None:
        """Note that a version will be unloaded: its memory is used until its workers have gone."""
        self._leaving = total((self._leaving, each.memory))
        self._gone.add(each.version)

    def cool(self, each: VersionFacts[V]) -> None:
        self._used["host"] -= each.warm
        self._gone.add(each.version)

    def reserve(self, each: VersionFacts[V]) -> None:
        self._reserved = total((self._reserved, each.memory))

    def make_room(self, wanting: VersionFacts[V] | None, now: float, plan: ResidencePlan[V]) -> None:
        """Add to the plan the versions that must go for one that waits: none if all together are not enough.

        Args:
            wanting: that version; None to come back within the limits.
        """
        missing = self._missing(
            {} if wanting is None else wanting.memory, 0 if wanting is None else wanting.warm, with_leaving=True
        )
        chosen: list[tuple[VersionFacts[V], bool]] = []
        for each in sorted(self._versions, key=lambda one: (one.state is ResidenceState.LOADED, one.used)):
            if not missing:
                break
            if each is wanting or each.version in self._gone or not each.movable:
                continue
            cold = each.state is ResidenceState.UNLOADED and each.warm > 0
            loaded = each.state is ResidenceState.LOADED and not each.has_work
            if loaded and now - each.loaded_at < YOUNG:
                plan.wake_at = min(plan.wake_at, each.loaded_at + YOUNG)
                continue
            freed: Memory = {"host": each.warm} if cold else each.memory if loaded else {}
            if any(freed.get(device, 0) for device in missing):
                chosen.append((each, cold))
                missing = {
                    device: left - freed.get(device, 0)
                    for device, left in missing.items()
                    if left > freed.get(device, 0)
                }
        if missing and wanting is not None:
            return
        for each, cold in chosen:
            if cold:
                plan.cool.append(each.version)
                self.cool(each)
            else:
                plan.unload.append((each.version, ROOM))
                self.leave(each)

    def _missing(self, memory: Memory, warm: int = 0, *, with_leaving: bool = False) -> dict[str, int]:
        """Return the bytes that are missing, by device, for a version that takes so many."""
        found = {}
        for device, limit in self._limits.items():
            used = self._used.get(device, 0) - (self._leaving.get(device, 0) if with_leaving else 0)
            needed = memory.get(device, 0) - (warm if device == "host" else 0)
            if used + needed > limit:
                found[device] = used + needed - limit
        return found


def total(memories: Iterable[Memory]) -> dict[str, int]:
    """Return the sums of bytes, by device."""
    sums = {"host": 0}
    for memory in memories:
        for device, count in memory.items():
            sums[device] = sums.get(device, 0) + count
    return sums
