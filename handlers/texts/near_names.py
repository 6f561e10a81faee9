"""The end of a message on an unknown name: the known one that is probably meant."""

from collections.abc import Iterable
from typing import Final

_MOST: Final = 100  # characters that are compared: a client chooses the name


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean `NAME`?", with the nearest of the known names; empty if none is near.

    Case and signs between words do not count.
    """
    from difflib import get_close_matches  # takes 8 ms, which no worker needs before a first error

    words = {plain(each): each for each in known}
    close = get_close_matches(plain(name), words, n=1)
    return f"; did you mean `{words[close[0]]}`?" if close else ""


def plain(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return "".join(filter(str.isalnum, name[:_MOST].lower()))
