"""A worker's life goes one way."""

import pytest

from daemon.core.states import IllegalTransition
from daemon.workers.state import TRANSITIONS, WorkerEvent, WorkerState, advance


@pytest.mark.parametrize("event", WorkerEvent)
@pytest.mark.parametrize("state", WorkerState)
def test_a_worker_follows_the_drawing_and_never_moves_back(state: WorkerState, event: WorkerEvent) -> None:
    if event in TRANSITIONS[state]:
        assert advance(state, event).value > state.value
    else:
        with pytest.raises(IllegalTransition, match=f"{event.name} in {state.name}"):
            advance(state, event)


@pytest.mark.parametrize("state", [state for state in WorkerState if state is not WorkerState.EXITED])
def test_a_worker_can_exit_at_any_time(state: WorkerState) -> None:
    assert advance(state, WorkerEvent.EXITED) is WorkerState.EXITED


def test_nothing_follows_the_end() -> None:
    assert TRANSITIONS[WorkerState.EXITED] == {}


def test_only_a_worker_that_was_loading_becomes_ready() -> None:
    before = [state for state in WorkerState if WorkerState.READY in TRANSITIONS[state].values()]

    assert before == [WorkerState.LOADING]
