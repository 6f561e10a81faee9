"""How a state machine moves: along the arrows of its table only."""

from enum import Enum, auto

import pytest

from daemon.core.states import IllegalTransition, follow


class Door(Enum):
    OPEN = auto()
    SHUT = auto()


class Push(Enum):
    IN = auto()
    OUT = auto()


TABLE: dict[Door, dict[Push, Door]] = {Door.OPEN: {Push.IN: Door.SHUT}, Door.SHUT: {}}


def test_an_arrow_leads_to_its_state() -> None:
    assert follow(TABLE, Door.OPEN, Push.IN) is Door.SHUT


@pytest.mark.parametrize("event", Push)
def test_where_there_is_no_arrow_both_ends_are_told(event: Push) -> None:
    with pytest.raises(IllegalTransition, match=f"^{event.name} in SHUT$"):
        follow(TABLE, Door.SHUT, event)
