"""Errors that are planted into the daemon: rows of a test, each with the sentence that must tell of it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from _pytest.mark.structures import ParameterSet

Plant = Callable[[pytest.MonkeyPatch], None]


class Around(NamedTuple):
    """A change of a method that calls what it replaces: its first argument."""

    call: Callable[..., Any]


def nothing(*_: Any) -> None:
    """Do not do it."""


def row(error: str, sentence: str, place: object, **changes: object) -> ParameterSet:
    """Return the row of an error that changes attributes of a class or a module."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        for name, change in changes.items():
            patch.setattr(place, name, _around(change.call, place, name) if isinstance(change, Around) else change)

    return pytest.param(plant, sentence, id=error)


def row_by(plant: Plant, sentence: str) -> ParameterSet:
    """Return the row of an error that needs a function, whose name says which it is."""
    return pytest.param(plant, sentence, id=plant.__name__.replace("_", " "))


def _around(call: Callable[..., Any], place: object, name: str) -> Callable[..., Any]:
    once = getattr(place, name)
    return lambda *arguments, **named: call(once, *arguments, **named)
