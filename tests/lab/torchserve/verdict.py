"""The verdict of a case, and its reason."""

import enum
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class Outcome(enum.Enum):
    """The possible verdicts, in the order in which they are counted."""

    WORKS = "works"
    PURPOSE = "different on purpose"
    UNJUDGED = "not judged here"
    DEFECT = "fails by a defect of tsctl"


class Row(NamedTuple):
    """One case: its name, its verdict and why."""

    name: str
    outcome: Outcome
    why: str = ""


def counts(rows: Sequence[Row]) -> str:
    """Return how many rows have each verdict, as a sentence without its full stop."""
    found = Counter(row.outcome for row in rows)
    said = [f"{found[outcome]} {outcome.value}" for outcome in Outcome if found[outcome]]
    return f"{len(rows)}: {', '.join(said) or 'none'}"
