"""Put the cases to a side, and judge its answers by the recorded ones."""

from collections.abc import Sequence

from tests.lab.conformance import recording
from tests.lab.conformance.case import Case, Group
from tests.lab.conformance.compare import Judgement, judge
from tests.lab.conformance.pending import PENDING
from tests.lab.conformance.purpose import PURPOSES
from tests.lab.conformance.side import Side


def compared(group: Group) -> list[Case]:
    """The cases whose features are there."""
    return [case for case in group.cases if case.needs not in PENDING]


def replay(group: Group, side: Side) -> dict[str, Judgement]:
    """Judge a group, by the cases' names.

    Raises:
        KeyError: a case has not been recorded.
    """
    recorded = recording.read(group.name)
    cases: Sequence[Case] = compared(group)
    answers = side.ask_all(group, cases)
    return {case.name: judge(case.name, recorded[case.name], answers[case.name], PURPOSES) for case in cases}
