"""State machines: a drawing and a table, state → event → next state. Each has its own module; here is how all move."""

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

State = TypeVar("State", bound=Enum)
Event = TypeVar("Event", bound=Enum)


class IllegalTransition(Exception):
    """Something was moved along an arrow that does not exist: a bug, or a worker that breaks the protocol."""


def follow(transitions: Mapping[State, Mapping[Event, State]], state: State, event: Event) -> State:
    """Follow one arrow of a drawing.

    Raises:
        IllegalTransition: there is no such arrow.
    """
    try:
        return transitions[state][event]
    except KeyError:
        raise IllegalTransition(f"{event.name} in {state.name}") from None
