"""Deadlines: who expires, in which phase, and when the next one will."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsctl.daemon.http.states.connection import ConnectionDeadlines, ConnectionPhase

ALLOWANCES = {
    ConnectionPhase.IDLE: 75.0,
    ConnectionPhase.HEADERS: 10.0,
    ConnectionPhase.BODY: 10.0,
    ConnectionPhase.BODY_RATE: 1.0,
    ConnectionPhase.ROOM: 1.0,
    ConnectionPhase.STUCK: 60.0,
    ConnectionPhase.LINGER: 2.0,
}


@pytest.fixture
def deadlines() -> ConnectionDeadlines[str]:
    return ConnectionDeadlines(ALLOWANCES)


def test_nobody_is_watched_at_first(deadlines: ConnectionDeadlines[str]) -> None:
    assert len(deadlines) == 0
    assert deadlines.next() is None
    assert deadlines.expired(1e9) == []


def test_entering_a_phase_says_when_it_ends(deadlines: ConnectionDeadlines[str]) -> None:
    assert deadlines.enter("a", ConnectionPhase.HEADERS, 5.0) == 15.0
    assert deadlines.next() == 15.0
    assert deadlines.phase("a") is ConnectionPhase.HEADERS


def test_a_deadline_expires_at_its_moment_and_not_before(deadlines: ConnectionDeadlines[str]) -> None:
    deadlines.enter("a", ConnectionPhase.HEADERS, 0.0)

    assert deadlines.expired(9.999) == []
    assert deadlines.expired(10.0) == [("a", ConnectionPhase.HEADERS)]


def test_who_expired_is_not_watched_any_more(deadlines: ConnectionDeadlines[str]) -> None:
    deadlines.enter("a", ConnectionPhase.HEADERS, 0.0)

    deadlines.expired(10.0)

    assert deadlines.phase("a") is None
    assert deadlines.expired(1e9) == []


def test_a_new_phase_replaces_the_old_one(deadlines: ConnectionDeadlines[str]) -> None:
    deadlines.enter("a", ConnectionPhase.HEADERS, 0.0)

    deadlines.enter("a", ConnectionPhase.IDLE, 1.0)

    assert len(deadlines) == 1
    assert deadlines.expired(75.0) == []
    assert deadlines.expired(76.0) == [("a", ConnectionPhase.IDLE)]


def test_entering_the_same_phase_again_starts_it_anew(deadlines: ConnectionDeadlines[str]) -> None:
    deadlines.enter("a", ConnectionPhase.HEADERS, 0.0)
    deadlines.enter("b", ConnectionPhase.HEADERS, 1.0)

    deadlines.enter("a", ConnectionPhase.HEADERS, 2.0)

    assert deadlines.expired(11.0) == [("b", ConnectionPhase.HEADERS)]
    assert deadlines.next() == 12.0


def test_leaving_twice_does_no_harm(deadlines: ConnectionDeadlines[str]) -> None:
    deadlines.enter("a", ConnectionPhase.BODY, 0.0)

    deadlines.leave("a")
    deadlines.leave("a")

    assert len(deadlines) == 0


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from([*ConnectionPhase, None]), st.floats(0.0, 20.0)),
        max_size=30,
    )
)
def test_it_agrees_with_a_plain_table(
    steps: list[tuple[str, ConnectionPhase | None, float]],
) -> None:
    deadlines: ConnectionDeadlines[str] = ConnectionDeadlines(ALLOWANCES)
    table: dict[str, tuple[float, ConnectionPhase]] = {}
    now = 0.0
    for who, phase, pause in steps:
        now += pause
        over = {name: entry[1] for name, entry in table.items() if entry[0] <= now}
        assert dict(deadlines.expired(now)) == over
        table = {name: entry for name, entry in table.items() if name not in over}
        if phase is None:
            deadlines.leave(who)
            table.pop(who, None)
        else:
            deadlines.enter(who, phase, now)
            table[who] = (now + ALLOWANCES[phase], phase)

        assert deadlines.next() == min((due for due, _ in table.values()), default=None)
        assert len(deadlines) == len(table)
