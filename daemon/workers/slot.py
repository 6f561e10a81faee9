"""A worker's place in the pool, and what is to be done about it.

    EMPTY ──start──▶ STARTING ──loaded──▶ UP
      ▲                 │                  │
      │                 ├──load failure────┼──▶ GAVE_UP
      │                 ├──exited──────────┴──▶ EMPTY     it had answered: replaced at once
      │                 └──exited──▶ BACKOFF ──due──▶ STARTING
      └── scale by hand: from BACKOFF and GAVE_UP ──┘

A worker that cannot load its model is not a crash: the next one would fail the same way, so the
slot gives up and keeps the traceback. A worker that exits before its first answered batch waits
with back-off; after `RESTART_LIMIT` such exits within `RESTART_WINDOW` the slot gives up too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from daemon.workers.engine import Worker

RESTART_LIMIT = 5
RESTART_WINDOW = 60.0  # seconds
FIRST_BACKOFF = 0.5  # seconds; doubles each time
LONGEST_BACKOFF = 30.0  # seconds


class SlotState(Enum):
    EMPTY = auto()  # nobody is here; a worker is to be started
    STARTING = auto()  # a worker is on its way
    UP = auto()  # its worker has the model loaded
    BACKOFF = auto()  # the last worker exited too early; wait until `retry_at`
    GAVE_UP = auto()  # another worker would fail as the last one did


@dataclass(slots=True)
class Slot:
    """One place. `failures` are the times of early exits; `retry_at` counts in BACKOFF only."""

    state: SlotState = SlotState.EMPTY
    worker: Worker | None = None
    retry_at: float = 0.0
    failures: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a reconciliation has to do: slots by index, and when to look again (None: no need)."""

    start: Sequence[int]
    retire: Sequence[int]
    add: int
    wake_at: float | None


def plan(slots: Sequence[Slot], wanted: int, now: float) -> Plan:
    """Compare wanted with actual.

    Retired are first the slots without a loaded model, then the youngest.
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
    return Plan(start, sorted(retire, reverse=True), max(0, wanted - len(slots)), wake_at)


def after_exit(slot: Slot, answered: bool, now: float) -> bool:
    """Move a slot on after its worker exited without reporting a load failure.

    Args:
        answered: whether that worker had answered a batch.

    Returns:
        Whether the slot gives up.
    """
    slot.worker = None
    if answered:
        slot.state, slot.failures = SlotState.EMPTY, []
        return False
    slot.failures = [at for at in slot.failures if now - at < RESTART_WINDOW] + [now]
    if len(slot.failures) >= RESTART_LIMIT:
        slot.state = SlotState.GAVE_UP
        return True
    slot.state = SlotState.BACKOFF
    slot.retry_at = now + min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (len(slot.failures) - 1))
    return False
