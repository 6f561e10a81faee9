"""A version goes in and out of memory along the drawing."""

import itertools

import pytest

from daemon.core.states import IllegalTransition
from daemon.models.residency.state import TRANSITIONS, ResidenceEvent, ResidenceState, advance


@pytest.mark.parametrize(("state", "event"), list(itertools.product(ResidenceState, ResidenceEvent)))
def test_only_the_arrows_of_the_drawing_are_followed(state: ResidenceState, event: ResidenceEvent) -> None:
    if event in TRANSITIONS[state]:
        assert advance(state, event) is TRANSITIONS[state][event]
    else:
        with pytest.raises(IllegalTransition, match=f"{event.name} in {state.name}"):
            advance(state, event)


def test_an_operator_can_hold_and_load_a_version_wherever_it_is() -> None:
    for state in ResidenceState:
        held = advance(state, ResidenceEvent.HOLD)
        assert advance(held, ResidenceEvent.LOAD) is ResidenceState.LOADING


def test_only_loading_takes_a_version_out_of_hold() -> None:
    leaving = {event for event, after in TRANSITIONS[ResidenceState.HELD].items() if after is not ResidenceState.HELD}

    assert leaving == {ResidenceEvent.LOAD}
