"""A version goes in and out of memory along the drawing."""

from tsctl.daemon.core.states import follow
from tsctl.daemon.extensions.residency.state import TRANSITIONS, ResidenceEvent, ResidenceState


def test_an_operator_can_hold_and_load_a_version_wherever_it_is() -> None:
    for state in ResidenceState:
        held = follow(TRANSITIONS, state, ResidenceEvent.HOLD)
        assert follow(TRANSITIONS, held, ResidenceEvent.LOAD) is ResidenceState.LOADING


def test_only_loading_takes_a_version_out_of_hold() -> None:
    leaving = {event for event, after in TRANSITIONS[ResidenceState.HELD].items() if after is not ResidenceState.HELD}

    assert leaving == {ResidenceEvent.LOAD}
