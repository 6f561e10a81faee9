"""Deadlines: who expires, in which phase, and when the next one will."""

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


def test_a_deadline_expires_at_its_moment_and_not_before() -> None:
    deadlines: ConnectionDeadlines[str] = ConnectionDeadlines(ALLOWANCES)
    deadlines.enter("a", ConnectionPhase.HEADERS, 0.0)

    assert deadlines.expired(9.999) == []
    assert deadlines.expired(10.0) == [("a", ConnectionPhase.HEADERS)]


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from([*ConnectionPhase, None]), st.floats(0.0, 20.0)), max_size=30
    )
)
def test_it_agrees_with_a_plain_table(steps: list[tuple[str, ConnectionPhase | None, float]]) -> None:
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
            table[who] = (now + ALLOWANCES[phase], phase)
            assert deadlines.enter(who, phase, now) == table[who][0]

        assert [deadlines.phase(name) for name in "abcd"] == [table.get(name, (0.0, None))[1] for name in "abcd"]
        assert deadlines.next() == min((due for due, _ in table.values()), default=None)
        assert len(deadlines) == len(table)
