"""How a state machine moves: along the arrows of its table only."""

from collections.abc import Mapping
from enum import Enum, auto
from itertools import product
from types import ModuleType

import pytest

from docs.generate.states import machines_on_the_shelf
from tsctl.daemon.core.states import IllegalTransition, follow
from tsctl.daemon.http.states import connection
from tsctl.daemon.lifecycle.upgrade import states as upgrade
from tsctl.daemon.workers import state as worker


class Door(Enum):
    OPEN = auto()
    SHUT = auto()


class Push(Enum):
    IN = auto()
    OUT = auto()


TABLE: dict[Door, dict[Push, Door]] = {Door.OPEN: {Push.IN: Door.SHUT}, Door.SHUT: {}}


def test_an_arrow_leads_to_its_state_and_where_there_is_none_both_ends_are_told() -> None:
    assert follow(TABLE, Door.OPEN, Push.IN) is Door.SHUT
    for event in Push:
        with pytest.raises(IllegalTransition, match=f"^{event.name} in SHUT$"):
            follow(TABLE, Door.SHUT, event)


@pytest.mark.parametrize("machine", [connection, upgrade, worker, *machines_on_the_shelf()])
def test_a_machine_follows_the_arrows_of_its_drawing_and_no_others(machine: ModuleType) -> None:
    check_arrows(machine)


def check_arrows(machine: ModuleType) -> None:
    transitions: Mapping[Enum, Mapping[Enum, Enum]] = machine.TRANSITIONS
    events = {each for arrows in transitions.values() for event in arrows for each in type(event)}

    assert {*transitions} == {*type(next(iter(transitions)))}
    for state, event in product(transitions, events):
        if event in transitions[state]:
            assert follow(transitions, state, event) == transitions[state][event]
        else:
            with pytest.raises(IllegalTransition, match=f"{event.name} in {state.name}"):
                follow(transitions, state, event)


@pytest.mark.parametrize("machine", [connection, upgrade, worker])
def test_a_life_goes_one_way(machine: ModuleType) -> None:
    arrows = [(state, event, to) for state, table in machine.TRANSITIONS.items() for event, to in table.items()]

    back = [(state, event) for state, event, to in arrows if to.value <= state.value]
    assert [(state, event) for state, event in back if event is not upgrade.UpgradeEvent.FAILED] == []
    assert {machine.TRANSITIONS[state][event] for state, event in back} <= {upgrade.Step.SERVING}
