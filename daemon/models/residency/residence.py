"""One version's residence in memory: its state and since when, what it takes, and who waits for it."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.models.residency.state import TRANSITIONS, ResidenceEvent, ResidenceState, advance
from tsctl.daemon.workers.pool import Pool

USUAL_LOAD = 5.0  # seconds: the estimate of a load before the first
LONGEST_LOAD, MOST_MEMORY = 86_400.0, 2**50  # seconds and bytes that a snapshot may claim


class Residence:
    """Moves along the drawing of state.py, and remembers what the next decision needs.

    Args:
        changed: called after each move, and when a request begins to wait for a load.

    Attributes:
        on_demand: whether requests load the version, and idleness unloads it.
        since: when the state began, seconds since the epoch.
        why: the reason of the last move, for people.
        kind: of that reason: request, startup, operator, idle, room; empty before the first move, and of a failure.
        asked: when the first request came that waits for a load, on the daemon's clock; None if none does.
        loaded_at: when the last load was done, on the daemon's clock.
        load_seconds: how long the last load took, maybe that of an earlier daemon; None before the first.
        memory: bytes by device (decision.py), as last measured while the version was loaded; empty before.
        warm: bytes that its template keeps while unloaded.
        left: whether the version has been retired, and takes no memory whatever its state was.
        loads, unloads: how often, by reason.
    """

    def __init__(self, clock: Clock, changed: Callable[[], None] = lambda: None, *, on_demand: bool = False) -> None:
        self.state = ResidenceState.UNLOADED
        self.on_demand = on_demand
        self.since = time.time()
        self.why = "not loaded yet"
        self.kind = ""
        self.asked: float | None = None
        self.loaded_at = -math.inf
        self.load_seconds: float | None = None
        self.memory: Mapping[str, int] = {}
        self.warm = 0
        self.left = False
        self.loads: Counter[str] = Counter()
        self.unloads: Counter[str] = Counter()
        self._clock = clock
        self._changed = changed
        self._began = clock.now()  # the state

    def __repr__(self) -> str:
        return f"<Residence {self.state.name}: {self.why}>"

    @property
    def resident(self) -> bool:
        """Whether the version is in memory, or is to be."""
        return self.state in (ResidenceState.LOADING, ResidenceState.LOADED, ResidenceState.FAILED)

    @property
    def comes(self) -> bool:
        """Whether a request without a worker waits for the version: it is loaded on demand, and not held."""
        return self.on_demand and self.state not in (ResidenceState.HELD, ResidenceState.FAILED)

    @property
    def age(self) -> float:
        """Seconds since the last load was done."""
        return self._clock.now() - self.loaded_at

    def recall(self, load_seconds: float | None, memory: Mapping[str, int]) -> None:
        """Take what an earlier daemon has measured; values that cannot be are ignored."""
        if load_seconds is not None and 0.0 < load_seconds < LONGEST_LOAD:
            self.load_seconds = load_seconds
        if memory and all(0 <= size < MOST_MEMORY for size in memory.values()):
            self.memory = dict(memory)

    def ask(self) -> None:
        """Note that a request waits for a load."""
        if self.state in (ResidenceState.UNLOADED, ResidenceState.UNLOADING) and self.asked is None:
            self.asked = self._clock.now()
            self._changed()

    def demand(self, *, on_demand: bool) -> None:
        """Load on demand from now on, or no more."""
        if on_demand is not self.on_demand:
            self.on_demand = on_demand
            self._changed()

    def leave(self) -> None:
        """Note that the version has been retired: its memory is free."""
        self.left = True
        self._changed()

    def forget_asked(self) -> None:
        """Note that no request waits any more."""
        self.asked = None

    def may(self, event: ResidenceEvent) -> bool:
        """Return whether the drawing has such an arrow from the present state."""
        return event in TRANSITIONS[self.state]

    def move(self, event: ResidenceEvent, why: str, kind: str = "") -> None:
        """Follow an arrow.

        Args:
            why: for people.
            kind: of the reason, for counters.

        Raises:
            IllegalTransition: there is no such arrow.
        """
        before, now = self.state, self._clock.now()
        self.state = advance(before, event)
        if self.state is before:
            return
        self.why, self.since = why, time.time()
        if event is ResidenceEvent.LOAD or event is ResidenceEvent.UNLOAD or event is ResidenceEvent.HOLD:
            self.kind = kind or "operator"
        elif event is ResidenceEvent.FAIL:
            self.kind = ""
        if self.state is ResidenceState.LOADED:
            self.loaded_at = now
            if before is ResidenceState.LOADING:
                self.load_seconds = now - self._began
        elif self.state is ResidenceState.LOADING:
            self.asked = None
            self.loads[kind or "operator"] += 1
        elif event is ResidenceEvent.UNLOAD or (self.state is ResidenceState.HELD and before in _IN_MEMORY):
            self.unloads[kind or "operator"] += 1
        self._began = now
        self._changed()

    def note(self, pool: Pool) -> None:
        """Follow the workers' states."""
        state = self.state
        if state is ResidenceState.LOADED:
            if pool.slots and pool.hopeless:
                self.move(ResidenceEvent.FAIL, _failure(pool))
        elif state is ResidenceState.LOADING or state is ResidenceState.FAILED:
            if pool.ready:
                self.move(ResidenceEvent.READY, self.why)
            elif state is ResidenceState.LOADING and pool.slots and pool.hopeless:
                self.move(ResidenceEvent.FAIL, _failure(pool))
        elif state is ResidenceState.UNLOADING and pool.empty:
            self.move(ResidenceEvent.GONE, self.why)

    @property
    def retry_after(self) -> int:
        """Seconds after which a rejected request may come again: the rest of a load as long as the last one."""
        expected = self.load_seconds or USUAL_LOAD
        done = self._clock.now() - self._began if self.state is ResidenceState.LOADING else 0.0
        return max(1, math.ceil(expected - done))


_IN_MEMORY = (ResidenceState.LOADING, ResidenceState.LOADED, ResidenceState.FAILED)


def _failure(pool: Pool) -> str:
    return "loading failed" if pool.failure is None else pool.failure.error
