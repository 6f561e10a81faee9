"""The cases, and the reasons for differences, are whole."""

from tests.lab.conformance import report
from tests.lab.conformance.cases import GROUPS
from tests.lab.conformance.compare import Judgement, Verdict
from tests.lab.conformance.purpose import PURPOSES


def test_a_purpose_for_named_cases_names_cases() -> None:
    names = {case.name for group in GROUPS for case in group.cases}

    assert {name for purpose in PURPOSES for name in purpose.cases} <= names


def test_there_are_at_least_150_cases() -> None:
    assert sum(len(group.cases) for group in GROUPS) >= 150


def test_the_page_names_every_case() -> None:
    same = {group.name: {case.name: Judgement(Verdict.SAME) for case in group.cases} for group in GROUPS}

    page = report.page(same)

    assert all(case.name.replace("|", "\\|") in page for group in GROUPS for case in group.cases)
    assert "0 wrong" in page
