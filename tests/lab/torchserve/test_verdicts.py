"""What is judged of TorchServe's tests: a failure has a reason, or it is a defect."""

import re

import pytest

from tests.lab.torchserve import report
from tests.lab.torchserve.run import judge_case
from tests.lab.torchserve.table import DIFFERENT, FILES, NOT_RUN
from tests.lab.torchserve.verdict import Outcome, Row


def test_a_defect_alone_fails_the_command() -> None:
    explained, defect = Row("x", Outcome.PURPOSE), Row("y", Outcome.DEFECT)

    assert report.failed({"part": [explained], "other": [defect]}) and not report.failed({"part": [explained]})


def test_each_exception_of_the_tables_has_a_reason_and_is_about_something_that_is_there() -> None:
    assert not set(FILES) & NOT_RUN.keys() and all(NOT_RUN.values())
    assert all(any(re.match(each.cases.partition("::")[0], file) for file in FILES) for each in DIFFERENT)
    assert all(each.message and each.why for each in DIFFERENT)


@pytest.mark.parametrize(
    ("case", "message", "outcome"),
    [
        ("[5]", "AssertionError: Timeout waiting for 'Backend worker error' (waited 30 seconds)", Outcome.PURPOSE),
        ("[30]", "AssertionError: Timeout waiting for 'Backend worker error' (waited 30 seconds)", Outcome.DEFECT),
        ("[5]", "AssertionError: Timeout waiting for 'Model server started.'", Outcome.DEFECT),
        ("[5]", "failed on setup: No module named 'onnxscript'", Outcome.UNJUDGED),
        ("[5]", "RuntimeError: Found no NVIDIA driver", Outcome.UNJUDGED),
    ],
)
def test_only_a_failure_of_the_table_is_different_on_purpose(case: str, message: str, outcome: Outcome) -> None:
    assert judge_case(f"test_startup_timeout.py::test_startup_timeout{case}", message).outcome is outcome


def test_both_pages_have_the_same_counts() -> None:
    texts = [page.read_text().partition(report.MARKS[0])[2].partition(report.MARKS[1])[0] for page in report.PAGES]

    assert texts[0] == texts[1] != ""
