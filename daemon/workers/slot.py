"""A worker's place in the pool, and the decision about its next step.

    EMPTY ──start──▶ STARTING ──loaded──▶ UP
      ▲                 │                  │
      │                 ├──load failure────┼──▶ GAVE_UP
      │                 ├──exited──────────┼──▶ EMPTY     it had answered: replaced at once
      │                 ├──exited──────────┼──▶ BACKOFF ──due──▶ STARTING
      │                 └──exited──────────┴──▶ GAVE_UP   once too often without work
      └── scale by hand: from BACKOFF and GAVE_UP ──┘

A worker that cannot load its model is not a crash: the next one would fail the same way, so the
slot gives up and keeps the traceback. After any other exit:

    the worker          had a started batch   the place
    had answered        or not                starts another at once
    had not             yes                   pauses: 0.5 s, doubling, at most `LONGEST_PAUSE`; never gives up
    had not             no                    pauses: 0.5 s, doubling; gives up at the `RESTART_LIMIT`th such exit
                                              within `RESTART_WINDOW`

A started batch is itself a possible cause of death, so such an exit does not show that the model cannot be served:
six requests that crash must not end the service for all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from tsctl.daemon.workers.engine import Worker

RESTART_LIMIT = 5
RESTART_WINDOW = 60.0  # seconds
FIRST_BACKOFF = 0.5  # seconds; doubles each time
LONGEST_BACKOFF = 30.0  # seconds
LONGEST_PAUSE = 5.0  # seconds, after exits with a started batch
_ENOUGH = 8  # doublings: more than the longest pause, and no float overflows


class SlotState(Enum):
    EMPTY = auto()  # no worker; one is to be started
    STARTING = auto()  # a worker is starting
    UP = auto()  # its worker has the model loaded
    BACKOFF = auto()  # the last worker exited too early; wait until `retry_at`
    GAVE_UP = auto()  # another worker would fail like the last one


@dataclass(slots=True)
class Slot:
    """One place in a pool.

    Attributes:
        retry_at: when the back-off ends; counts in BACKOFF only.
        failures: the times of early exits without work.
        crashes: early exits with a started batch, since a worker of this place last answered.
        recovering: the last worker exited with a started batch, and the next one has not loaded yet.
    """

    state: SlotState = SlotState.EMPTY
    worker: Worker | None = None
    retry_at: float = 0.0
    failures: list[float] = field(default_factory=list)
    crashes: int = 0
    recovering: bool = False

    def forgive(self) -> None:
        """Start anew where the slot pauses or has given up, with a clean record."""
        if self.state in (SlotState.BACKOFF, SlotState.GAVE_UP):
            self.state, self.failures, self.crashes = SlotState.EMPTY, [], 0


@dataclass(frozen=True, slots=True)
class ReconcilePlan:
    """The actions of a reconciliation: slots by index, and when to check again (None: no need)."""

    start: Sequence[int]
    retire: Sequence[int]
    add: int
    wake_at: float | None


def plan(slots: Sequence[Slot], wanted: int, now: float) -> ReconcilePlan:
    """Compare wanted with actual.

    Slots without a loaded model are retired first, then the youngest.
    """
    surplus = max(0, len(slots) - wanted)
    by_worth = sorted(range(len(slots)), key=lambda index: (slots[index].state is SlotState.UP, -index))
    retire = frozenset(by_worth[:surplus])
    start, wake_at = [], None
    for index, slot in enumerate(slots):
        if index in retire:
            continue
        if slot.state is SlotState.EMPTY or (slot.state is SlotState.BACKOFF and slot.retry_at <= now):
            start.append(index)
        elif slot.state is SlotState.BACKOFF:
            wake_at = slot.retry_at if wake_at is None else min(wake_at, slot.retry_at)
    return ReconcilePlan(start, sorted(retire, reverse=True), max(0, wanted - len(slots)), wake_at)


def after_exit(slot: Slot, answered: bool, now: float, busy: bool = False) -> bool:
    """Update a slot after its worker exited without reporting a load failure.

    Args:
        answered: whether that worker had answered a batch.
        busy: whether that worker had a started batch.

    Returns:
        Whether the slot gives up.
    """
    slot.worker = None
    slot.recovering = busy
    if answered:
        slot.state, slot.failures, slot.crashes = SlotState.EMPTY, [], 0
        return False
    if busy:
        slot.state = SlotState.BACKOFF
        slot.retry_at = now + min(LONGEST_PAUSE, FIRST_BACKOFF * 2 ** min(slot.crashes, _ENOUGH))
        slot.crashes += 1
        return False
    slot.failures = [at for at in slot.failures if now - at < RESTART_WINDOW] + [now]
    if len(slot.failures) >= RESTART_LIMIT:
        slot.state = SlotState.GAVE_UP
        return True
    slot.state = SlotState.BACKOFF
    slot.retry_at = now + min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (len(slot.failures) - 1))
    return False
