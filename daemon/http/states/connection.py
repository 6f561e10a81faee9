"""The one-way life of a connection, and how long each phase of it is waited for. The time is an argument.

    READING ──ended──▶ ANSWERING ──answered──▶ LINGERING
       │                   │                       │
       └─────finished──────┴───▶ LEAVING           │
                                    │              │
    any state ──────────lost────────┴──────────────┴──▶ CLOSED

From READING, nothing but an end leads away: the last request has come, a request was refused, or the daemon stops.
The answers that are owed then still go out. No arrow goes back, so what is not read in one state is read in no later
one. LINGERING is skipped where nothing is left to discard, or where the end of the answers can be signalled only by
closing: the transport is closed in ANSWERING or LEAVING, and reports that it is lost.
"""

from collections.abc import Hashable, Mapping
from enum import IntEnum, auto
from typing import Final, Generic, TypeVar

from tsctl.daemon.core.states import follow


class ConnectionState(IntEnum):
    READING = auto()  # requests are read, and answered in their order
    ANSWERING = auto()  # nothing more is read; the answers that are owed go out
    LEAVING = auto()  # the client has closed its side; the answers already on their way go out
    LINGERING = auto()  # all is answered, and our side is shut down; input is discarded
    CLOSED = auto()  # the transport is gone


class ConnectionEvent(IntEnum):
    ENDED = auto()  # the last request was read or refused
    FINISHED = auto()  # the client closed its side
    ANSWERED = auto()  # the last answer is out
    LOST = auto()


TRANSITIONS: dict[ConnectionState, dict[ConnectionEvent, ConnectionState]] = {
    ConnectionState.READING: {
        ConnectionEvent.ENDED: ConnectionState.ANSWERING,
        ConnectionEvent.FINISHED: ConnectionState.LEAVING,
        ConnectionEvent.LOST: ConnectionState.CLOSED,
    },
    ConnectionState.ANSWERING: {
        ConnectionEvent.FINISHED: ConnectionState.LEAVING,
        ConnectionEvent.ANSWERED: ConnectionState.LINGERING,
        ConnectionEvent.LOST: ConnectionState.CLOSED,
    },
    ConnectionState.LEAVING: {ConnectionEvent.LOST: ConnectionState.CLOSED},
    ConnectionState.LINGERING: {ConnectionEvent.LOST: ConnectionState.CLOSED},
    ConnectionState.CLOSED: {},
}

# The same as literals: compiled, a comparison with one is an instruction, and a look-up in the enumeration a call.
READING: Final = 1
ANSWERING: Final = 2
LEAVING: Final = 3
LINGERING: Final = 4
CLOSED: Final = 5


def advance(state: int, event: ConnectionEvent) -> int:
    """Return the next state, by one arrow of the drawing.

    Raises:
        IllegalTransition: there is no such arrow.
    """
    return follow(TRANSITIONS, ConnectionState(state), event)


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
    """Deadlines of many connections with one timer and constant cost.

    Every phase has one fixed timeout, so connections enter and expire in the same order: each phase keeps its
    connections in a dict by time of entry, and only the first can be the next to expire.

    Args:
        allowances: the timeout of each phase in seconds.
    """

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
        phase = self._phase.pop(who, None)
        if phase is not None:
            del self._entered[phase][who]

    def take_first(self, phase: ConnectionPhase, until: float) -> T | None:
        """Remove and return the connection that entered a phase first, if that was at most at `until`; else None."""
        first = next(iter(self._entered[phase].items()), None)
        if first is None or first[1] - self._allowances[phase] > until:
            return None
        self.leave(first[0])
        return first[0]

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


LINGER_MOST = 30.0  # seconds that an uploader may take, in all, to read its rejection and stop


class Lingering:
    """The discarding of one connection's input after its last answer: while it goes on, and not for ever.

    Closing at once would reset the connection, and an uploader would never see the answer (RFC 9112, section 9.6).

    Args:
        now: in seconds, as all times here are.
    """

    def __init__(self, now: float) -> None:
        self._heard = False  # input arrived since the last check
        self.linger(now)

    def linger(self, now: float) -> None:
        """Allow `LINGER_MOST` from now on."""
        self._ends = now + LINGER_MOST

    def hear(self) -> bool:
        """Note that input was discarded; return whether that is the first since the last check."""
        heard, self._heard = self._heard, True
        return not heard

    def check(self, now: float) -> bool:
        """Return whether to go on: input has arrived since the last check, and time is left."""
        heard, self._heard = self._heard, False
        return heard and now < self._ends


SILENCE = 2.0  # seconds without a byte taken


class Farewell(Generic[T]):
    """The clients of a replaced daemon that do not take their answers, or send on after one.

    Without this bound, a client that reads a byte a minute would keep the process, its workers and their memory. One
    that reads has `grace` seconds for its answers, however late they came; once the grace of the upgrade is over, one
    that does not move has `SILENCE` seconds of them. Times are seconds on the caller's clock.

    Args:
        grace: seconds since the replacement, until which nobody is left.
        now: the time of the replacement.
    """

    def __init__(self, grace: float, now: float) -> None:
        self._grace = grace
        self._over = now + grace
        self._seen: dict[T, tuple[float, float, int]] = {}  # since when; when it moved last; bytes to take

    def overdue(self, unsent: Mapping[T, int], now: float) -> list[T]:
        """Return the clients that are not waited for any more.

        Args:
            unsent: the bytes that each client has not taken, of those for which nothing else is done.
        """
        seen = {}
        for who, count in unsent.items():
            since, moved, before = self._seen.get(who, (now, now, count))
            seen[who] = (since, moved if count == before else now, count)
        self._seen = seen
        if now < self._over:
            return []
        return [who for who, (since, moved, _) in seen.items() if now >= since + self._grace or now >= moved + SILENCE]
