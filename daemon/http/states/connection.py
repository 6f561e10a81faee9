"""The one-way life of a connection.

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

from enum import IntEnum, auto
from typing import Final

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
