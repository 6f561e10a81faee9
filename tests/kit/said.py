"""Tables in text files (told.py): what a function is given, and what it says of that.

> {"rate": 33.0}             what it is given, JSON or text: as the test reads it
< 33 requests/s come, …      what it says, each line of it
"""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kit.told import Told, told_in


def said_in(name: str) -> Callable[[Callable[..., str]], Callable[..., None]]:
    """Make a function a test of what it says of all that it is `given` in a file beside it; it may use fixtures."""

    def test_of(says: Callable[..., str]) -> Callable[..., None]:
        @functools.wraps(says)
        def test(told: Told, **fixtures: Any) -> None:
            made: list[str] = []
            for line in told.lines:
                if line.startswith(">"):
                    made += [line, *(f"< {each}".rstrip() for each in says(line[2:], **fixtures).split("\n"))]
            told.compare(made)

        of_says = inspect.signature(says)
        _, *fixtures = of_says.parameters.values()
        ours = inspect.Parameter("told", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        vars(test)["__signature__"] = of_says.replace(parameters=[ours, *fixtures])
        marked: Callable[..., None] = told_in([Path(says.__code__.co_filename).with_name(name)])(test)
        return marked

    return test_of


def reason(call: Callable[[], object], *errors: type[Exception]) -> str:
    """Return the sentence of the error that a call raises; one that raises none is accepted."""
    try:
        return f"accepted: {call()!r}"
    except errors as error:
        return str(error)
