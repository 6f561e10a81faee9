"""One version's residence in memory: its state and since when, what it takes, and who waits for it.

It is the version's presence (models/presence.py): a version that is loaded on demand has workers only while it is
loaded, and a request that finds none waits.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping

from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.states import follow
from tsctl.daemon.extensions.residency import ON_DEMAND
from tsctl.daemon.extensions.residency.state import TRANSITIONS, ResidenceEvent, ResidenceState
from tsctl.daemon.models.presence import Presence
from tsctl.daemon.models.reporting.model_state import NOT_IN_MEMORY
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.setting_values import FOREVER
from tsctl.daemon.workers.pool import Pool


def has_work(model: ModelVersion) -> bool:
    """Return whether a request waits or runs, or workers keep the state of a client."""
    return not model.idle or model.dispatcher.remembered > 0


def is_movable(model: ModelVersion) -> bool:
    """Return whether a loaded version may be unloaded by the daemon at all."""
    return residence_of(model).on_demand and not model.settings.pinned and not model.stopping


def keep_alive_of(model: ModelVersion) -> float:
    """Return how many seconds a version stays loaded without work; inf for always."""
    seconds = model.settings.keep_alive
    return math.inf if seconds is None or seconds >= FOREVER else seconds


USUAL_LOAD = 5.0  # seconds: the estimate of a load before the first
LONGEST_LOAD, MOST_MEMORY = 86_400.0, 2**50  # seconds and bytes that a snapshot may claim


class Residence(Presence):
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
        retired: whether the version has been retired, and takes no memory whatever its state was.
        loads, unloads: how often, by reason.
    """

    def __init__(self, model: ModelVersion, changed: Callable[[], None] = lambda: None) -> None:
        super().__init__(model.pool, model.presence.resized)
        self.state = ResidenceState.UNLOADED
        self.on_demand = model.settings.loading == ON_DEMAND
        self.since = time.time()
        self.why = "not loaded yet"
        self.kind = ""
        self.asked: float | None = None
        self.loaded_at = -math.inf
        self.load_seconds: float | None = None
        self.memory: Mapping[str, int] = {}
        self.warm = 0
        self.retired = False
        self.loads: Counter[str] = Counter()
        self.unloads: Counter[str] = Counter()
        self._model = model
        self._clock = model.clock
        self._changed = changed
        self._began = self._clock.now()  # the state

    def __repr__(self) -> str:
        return f"<Residence {self.state.name}: {self.why}>"

    @property
    def present(self) -> bool:
        """Whether the version is in memory, or is to be."""
        return self.state in _IN_MEMORY

    @property
    def comes(self) -> bool:
        """Whether a request without a worker waits for the version: it is loaded on demand, and not held."""
        return self.on_demand and self.state not in (ResidenceState.HELD, ResidenceState.FAILED)

    @property
    def absence(self) -> str:
        return NOT_IN_MEMORY if self.on_demand else super().absence

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

    def follow_settings(self) -> None:
        """Note that the version's settings may have changed: its keep-alive, too, may be over now."""
        self.on_demand = self._model.settings.loading == ON_DEMAND
        self._changed()

    def start(self, least: int, most: int, *, held: bool, load: bool = False) -> None:
        if self.on_demand and not least and self._model.settings.origins.get("workers") == "default":
            least, most = 1, max(1, most)  # nobody names a number; a version without workers could not be loaded
        if self.on_demand and not held and not (least and load):
            self.least, self.most = least, most
            if least:
                self.resized()
            else:
                self.end("registered without workers")
        else:
            super().start(least, most, held=held, load=load)

    def resume(self, why: str, kind: str = "operator") -> None:
        if self.may(ResidenceEvent.LOAD):
            self.move(ResidenceEvent.LOAD, why, kind)
        super().resume(why, kind)

    def end(self, why: str) -> None:
        self.move(ResidenceEvent.HOLD, why)
        super().end(why)

    def unload(self, why: str, kind: str) -> None:
        """End the workers of a loaded version; the next request loads it. Arguments as for `resume`."""
        self.move(ResidenceEvent.UNLOAD, why, kind)
        self.choose(0)

    def choose(self, number: int) -> None:
        """Set the number of workers; a version that is loaded on demand has one while it is loaded, at least."""
        super().choose(max(number, int(self.on_demand)))

    def retried(self) -> None:
        if self.state is ResidenceState.FAILED:
            self.move(ResidenceEvent.LOAD, "tried again by an operator")

    def lost(self, reason: str) -> None:
        if self.may(ResidenceEvent.LOAD):
            self.move(ResidenceEvent.LOAD, "restored", "startup")
        self.move(ResidenceEvent.FAIL, reason)

    def left(self) -> None:
        """Note that the version has been retired: its memory is free."""
        self.retired = True
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
        self.state = follow(TRANSITIONS, before, event)
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

    def pool_changed(self) -> None:
        """Follow the workers' states."""
        state, pool = self.state, self._pool
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

    def set_retry_after(self, error: DaemonError) -> None:
        """Let a rejected request come again when a load as long as the last one would be done."""
        if self.comes:
            error.retry_after = self.retry_after

    @property
    def retry_after(self) -> int:
        """Seconds until a load as long as the last one is done."""
        expected = self.load_seconds or USUAL_LOAD
        done = self._clock.now() - self._began if self.state is ResidenceState.LOADING else 0.0
        return max(1, math.ceil(expected - done))


_IN_MEMORY = (ResidenceState.LOADING, ResidenceState.LOADED, ResidenceState.FAILED)


def residence_of(model: ModelVersion) -> Residence:
    """Return the residence of a version that a service has attached one to."""
    assert isinstance(model.presence, Residence)
    return model.presence


def _failure(pool: Pool) -> str:
    return "loading failed" if pool.failure is None else pool.failure.error
