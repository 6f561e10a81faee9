"""The trial of a version moves along the arrows of its drawing only."""

from tests.core.test_states import check_arrows
from tsctl.daemon.extensions.optimizing import trial as state
from tsctl.daemon.extensions.optimizing.trial import TRANSITIONS, TrialState


def test_a_trial_follows_the_arrows_of_its_drawing_and_no_others() -> None:
    check_arrows(state)


def test_nothing_leads_on_where_the_trial_has_told_or_cannot() -> None:
    ends = {state for state in TrialState if not TRANSITIONS[state]}

    assert ends == {TrialState.OFF, TrialState.KEPT, TrialState.FAILED}


def test_every_state_but_off_is_reached_from_waiting() -> None:
    reached = {TrialState.WAITING}
    for _ in TrialState:
        reached |= {after for state in reached for after in TRANSITIONS[state].values()}

    assert reached == set(TrialState) - {TrialState.OFF}
