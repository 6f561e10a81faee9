"""A counter for the path of a request."""

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

K = TypeVar("K")


class QuickCounter(Counter[K]):
    """A `Counter` that is written as a dict is.

    `Counter` has a `__delitem__` in Python, and with that each assignment is a look-up of a method: 1 000 instructions.
    """

    if not TYPE_CHECKING:
        __setitem__, __delitem__ = dict.__setitem__, dict.__delitem__
