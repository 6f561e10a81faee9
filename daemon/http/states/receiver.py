"""The states of a receiver: what the client's next bytes belong to.

           ┌───────────────complete───────────────┐
           ▼                                      │
         IDLE ──begun──▶ HEAD ──parsed──▶ BODY ───┤
           │             │  ▲                     │
           │        begun└──┘└──placed──▶ STORED ─┘
           └──────────────known─────────────▲
    any state ──left──▶ CLOSED

A head is begun once more where it offered an upgrade: it is parsed again without the offer. From IDLE, a request whose
head was known needs no parser: it leads to STORED, or, complete in one piece, nowhere.

These states change several times in each request, so the receiver compares and assigns plain integers, and a test
observes that each change is an arrow (tests/http/states/test_receiver.py).
"""

from enum import IntEnum, auto
from typing import Final


class ReceiverState(IntEnum):
    IDLE = auto()  # no request has begun
    HEAD = auto()  # of a request that has begun, the headers are not complete
    BODY = auto()  # the headers are complete, and the parser reads the body
    STORED = auto()  # the headers are complete, and the body is received in its place in the arena
    CLOSED = auto()  # nothing more is read


class ReceiverEvent(IntEnum):
    BEGUN = auto()  # the first byte of a request
    PARSED = auto()  # the end of its headers
    PLACED = auto()  # the same, and there is a place for its large body
    KNOWN = auto()  # a head that is known again, and there is a place for its large body
    COMPLETE = auto()  # the last byte of its body
    LEFT = auto()  # by the connection


TRANSITIONS: dict[ReceiverState, dict[ReceiverEvent, ReceiverState]] = {
    ReceiverState.IDLE: {
        ReceiverEvent.BEGUN: ReceiverState.HEAD,
        ReceiverEvent.KNOWN: ReceiverState.STORED,
        ReceiverEvent.LEFT: ReceiverState.CLOSED,
    },
    ReceiverState.HEAD: {
        ReceiverEvent.BEGUN: ReceiverState.HEAD,
        ReceiverEvent.PARSED: ReceiverState.BODY,
        ReceiverEvent.PLACED: ReceiverState.STORED,
        ReceiverEvent.LEFT: ReceiverState.CLOSED,
    },
    ReceiverState.BODY: {
        ReceiverEvent.COMPLETE: ReceiverState.IDLE,
        ReceiverEvent.LEFT: ReceiverState.CLOSED,
    },
    ReceiverState.STORED: {
        ReceiverEvent.COMPLETE: ReceiverState.IDLE,
        ReceiverEvent.LEFT: ReceiverState.CLOSED,
    },
    ReceiverState.CLOSED: {},
}

# The same as literals: compiled, a comparison with one is an instruction, and a look-up in the enumeration a call.
IDLE: Final = 1
HEAD: Final = 2
BODY: Final = 3
STORED: Final = 4
CLOSED: Final = 5
