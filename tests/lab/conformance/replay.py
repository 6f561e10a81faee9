"""Put the cases to a side, and judge its answers by the recorded ones."""

from tests.lab.conformance import recording
from tests.lab.conformance.case import Group
from tests.lab.conformance.compare import Judgement, judge
from tests.lab.conformance.purpose import PURPOSES
from tests.lab.conformance.side import Side


def replay(group: Group, side: Side) -> dict[str, Judgement]:
    """Judge a group, by the cases' names.

    Raises:
        KeyError: a case has not been recorded.
    """
    recorded = recording.read(group.name)
    answers = side.ask_all(group, group.cases)
    return {case.name: judge(case.name, recorded[case.name], answers[case.name], PURPOSES) for case in group.cases}
