"""The trial of a version moves along the arrows of its drawing only."""

import pytest

from daemon.core.states import IllegalTransition
from daemon.models.optimizing.state import TRANSITIONS, TrialEvent, TrialState, advance


@pytest.mark.parametrize("state", TrialState)
@pytest.mark.parametrize("event", TrialEvent)
def test_every_other_move_is_refused(state: TrialState, event: TrialEvent) -> None:
    if event in TRANSITIONS[state]:
        assert advance(state, event) is TRANSITIONS[state][event]
    else:
        with pytest.raises(IllegalTransition, match=f"{event.name} in {state.name}"):
            advance(state, event)


def test_nothing_leads_on_where_the_trial_has_told_or_cannot() -> None:
    ends = {state for state in TrialState if not TRANSITIONS[state]}

    assert ends == {TrialState.OFF, TrialState.KEPT, TrialState.FAILED}


def test_every_state_but_off_is_reached_from_waiting() -> None:
    reached = {TrialState.WAITING}
    for _ in TrialState:
        reached |= {after for state in reached for after in TRANSITIONS[state].values()}

    assert reached == set(TrialState) - {TrialState.OFF}
