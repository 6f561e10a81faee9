"""A receiver changes its state only along the arrows of its drawing, whatever bytes come and however they are cut."""

import os
from collections.abc import Iterable

import pytest

from tests.compiled import COMPILED
from tests.http.hostile.framing import CHUNKS, ENCODINGS, LENGTHS
from tests.http.hostile.lines import HEADERS, METHODS, TARGETS, VERSIONS
from tests.http.peer import GET, chunked, get, post
from tests.http.reading import Reading
from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.places import PAGE
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.parsing import body, parser
from tsctl.daemon.http.parsing.parser import Receiver
from tsctl.daemon.http.states import receiver
from tsctl.daemon.http.states.receiver import TRANSITIONS, ReceiverEvent, ReceiverState

LARGE = 10  # bytes, for these tests
BODY = bytes(range(40))
LIMITS = HttpLimits(max_body=1000, max_head=2000, max_headers=10)
TABLES = (LENGTHS, ENCODINGS, CHUNKS, TARGETS, VERSIONS, METHODS, HEADERS)
HOSTILE = [data for table in TABLES for data, _ in table.values()]
STREAMS = [
    GET + get("/b") + post(b"abc") + chunked(b"ab", b"c") + post(BODY) + GET,
    post(BODY) * 3,
    post(BODY, "Expect: 100-continue") + post(BODY * 30),
    post(BODY, "Connection: Upgrade", "Upgrade: h2c") + GET,
    GET[:-4],
    post(b"abc")[:-1],
    *(data for data in HOSTILE if len(data) < 500),
]
ARROWS = {(state, after) for state, table in TRANSITIONS.items() for after in table.values()}
Seen = set[tuple[ReceiverState, ReceiverState]]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """The changes of state of all receivers."""
    if COMPILED in os.environ:
        pytest.skip("the attributes of a compiled class are set without anybody's notice")
    changes: Seen = set()

    def watched(who: Receiver, name: str, value: object) -> None:
        if name == "state" and isinstance(value, int) and "state" in vars(who):
            changes.add((ReceiverState(who.state), ReceiverState(value)))
        object.__setattr__(who, name, value)

    monkeypatch.setattr(Receiver, "__setattr__", watched)
    for module in (body, parser):
        monkeypatch.setattr(module, "SHARED_FROM", LARGE)
    return changes


def test_the_literals_are_the_states() -> None:
    assert {state.name: state.value for state in ReceiverState}.items() <= vars(receiver).items()


def test_a_connection_can_leave_off_at_any_time_and_for_good() -> None:
    lasting = [state for state in ReceiverState if ReceiverEvent.LEFT not in TRANSITIONS[state]]

    assert lasting == [ReceiverState.CLOSED]
    assert TRANSITIONS[ReceiverState.CLOSED] == {}


def read(pieces: Iterable[bytes], arena: Arena) -> None:
    """Read these on a connection that may know a head again and has an arena, and leave off."""
    reading = Reading(LIMITS, compares=True, storage=arena)
    for piece in pieces:
        reading.feed(piece)
    reading.receiver.leave()


def test_each_change_is_an_arrow_and_each_arrow_is_taken(seen: Seen) -> None:
    arena = Arena(16 * PAGE)
    for stream in STREAMS:
        for size in (1, 50, len(stream)):
            read([stream[at : at + size] for at in range(0, len(stream), size)], arena)
    for stream in STREAMS[:4]:
        for end in range(len(stream)):
            read([stream[:end]], arena)
    read([post(BODY), post(BODY)[:-5], BODY[-5:]], arena)  # a head that is known again

    assert seen - ARROWS == set()
    assert ARROWS - seen == set()
