"""A worker's life goes one way."""

import pytest

from daemon.core.states import IllegalTransition
from daemon.workers.state import TRANSITIONS, Event, State, advance


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("state", State)
def test_a_worker_follows_the_drawing_and_never_moves_back(state: State, event: Event) -> None:
    if event in TRANSITIONS[state]:
        assert advance(state, event).value > state.value
    else:
        with pytest.raises(IllegalTransition, match=f"{event.name} in {state.name}"):
            advance(state, event)


@pytest.mark.parametrize("state", [state for state in State if state is not State.EXITED])
def test_a_worker_can_exit_at_any_time(state: State) -> None:
    assert advance(state, Event.EXITED) is State.EXITED


def test_nothing_follows_the_end() -> None:
    assert TRANSITIONS[State.EXITED] == {}


def test_only_a_worker_that_was_loading_becomes_ready() -> None:
    before = [state for state in State if State.READY in TRANSITIONS[state].values()]

    assert before == [State.LOADING]
