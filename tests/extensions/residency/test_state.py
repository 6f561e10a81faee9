"""A version goes in and out of memory along the drawing."""

from tsctl.daemon.extensions.residency.state import TRANSITIONS, ResidenceEvent, ResidenceState, advance


def test_an_operator_can_hold_and_load_a_version_wherever_it_is() -> None:
    for state in ResidenceState:
        held = advance(state, ResidenceEvent.HOLD)
        assert advance(held, ResidenceEvent.LOAD) is ResidenceState.LOADING


def test_only_loading_takes_a_version_out_of_hold() -> None:
    leaving = {event for event, after in TRANSITIONS[ResidenceState.HELD].items() if after is not ResidenceState.HELD}

    assert leaving == {ResidenceEvent.LOAD}
