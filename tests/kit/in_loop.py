"""What a test has as an argument, and what needs the loop that the test runs on."""

from collections.abc import Callable
from typing import Any, NamedTuple


class InLoop(NamedTuple):
    """The value of a fixture of an `async def` test: made on the test's loop, which gets what `make` returns."""

    make: Callable[[], Any]
