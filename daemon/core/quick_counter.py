"""A counter for the path of a request."""

from collections import Counter
from typing import Any


class QuickCounter(Counter[Any]):
    """A `Counter` that is written as a dict: its `__delitem__` in Python costs each assignment 1 000 instructions."""

    __setitem__, __delitem__ = dict.__setitem__, dict.__delitem__
