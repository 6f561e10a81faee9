"""The answer of a check: fine, a warning or a problem, each of the last two with its remedy."""

from typing import NamedTuple

OK, WARNING, PROBLEM = "ok", "warning", "problem"


class Verdict(NamedTuple):
    """The answer of one check.

    Attributes:
        state: `ok`; `warning`: serving works, but slower or not for all; `problem`: something would break serving.
        text: the value that was found.
        remedy: what to do; empty if nothing is to be done.
    """

    state: str
    text: str
    remedy: str = ""


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return one answer of several: the state and remedies of the worst ones, and their texts."""
    for state in (PROBLEM, WARNING):
        found = [each for each in verdicts if each.state == state]
        if found:
            texts, remedies = ("; ".join(dict.fromkeys(each[index] for each in found)) for index in (1, 2))
            return Verdict(state, texts, remedies)
    return Verdict(OK, "; ".join(each.text for each in verdicts))
