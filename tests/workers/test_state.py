"""A worker's life goes one way."""

import pytest

from tsctl.daemon.core.states import follow
from tsctl.daemon.workers.state import TRANSITIONS, WorkerEvent, WorkerState


@pytest.mark.parametrize("state", [state for state in WorkerState if state is not WorkerState.EXITED])
def test_a_worker_can_exit_at_any_time(state: WorkerState) -> None:
    assert follow(TRANSITIONS, state, WorkerEvent.EXITED) is WorkerState.EXITED


def test_nothing_follows_the_end() -> None:
    assert TRANSITIONS[WorkerState.EXITED] == {}


def test_only_a_worker_that_was_loading_becomes_ready() -> None:
    before = [state for state in WorkerState if WorkerState.READY in TRANSITIONS[state].values()]

    assert before == [WorkerState.LOADING]
