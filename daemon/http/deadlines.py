"""Deadlines of many connections with one timer and constant cost.

Every phase has one fixed timeout, so connections enter and expire in the same order: each phase keeps its connections
in a dict by time of entry, and only the first can be the next to expire. A connection is in one phase at a time.
Deadlines have no clock: the time is an argument.
"""

from collections.abc import Hashable, Mapping
from enum import IntEnum, auto
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class ConnectionPhase(IntEnum):  # its hash is not a Python call, as a plain Enum's is
    IDLE = auto()  # nothing received, nothing owed: keep-alive
    HEADERS = auto()  # a request has begun; its headers are not complete
    BODY = auto()  # the body is not complete; its rate is checked first when this phase expires
    BODY_RATE = auto()  # further checks of the rate
    ROOM = auto()  # the body waits for room, and the connection is not read
    STUCK = auto()  # the client does not read its answer
    LINGER = auto()  # answered and shut down; further input is discarded


class ConnectionDeadlines(Generic[T]):
    """Args: `allowances`, the timeout of each phase in seconds."""

    def __init__(self, allowances: Mapping[ConnectionPhase, float]) -> None:
        self._allowances = dict(allowances)
        self._entered: dict[ConnectionPhase, dict[T, float]] = {phase: {} for phase in ConnectionPhase}
        self._phase: dict[T, ConnectionPhase] = {}

    def __len__(self) -> int:
        return len(self._phase)

    def phase(self, who: T) -> ConnectionPhase | None:
        return self._phase.get(who)

    def enter(self, who: T, phase: ConnectionPhase, now: float) -> float:
        """Start the phase's timeout anew, and return when it expires."""
        before = self._phase.get(who)
        if before is not None:
            del self._entered[before][who]
        self._phase[who] = phase
        due = self._entered[phase][who] = now + self._allowances[phase]
        return due

    def leave(self, who: T) -> None:
        """Cancel the connection's deadline."""
        phase = self._phase.pop(who, None)
        if phase is not None:
            del self._entered[phase][who]

    def next(self) -> float | None:
        """Return when the first deadline expires, or None if there is none."""
        return min((next(iter(entered.values())) for entered in self._entered.values() if entered), default=None)

    def expired(self, now: float) -> list[tuple[T, ConnectionPhase]]:
        """Remove and return all expired connections, with their phases."""
        over: list[tuple[T, ConnectionPhase]] = []
        for phase, entered in self._entered.items():
            while entered:
                who, due = next(iter(entered.items()))
                if due > now:
                    break
                self.leave(who)
                over.append((who, phase))
        return over
