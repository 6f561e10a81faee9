"""What is judged of TorchServe's documents and tests: a refusal has a reason, or it is a defect."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.lab.torchserve import report
from tests.lab.torchserve.model_configs import judge_file
from tests.lab.torchserve.purposes import REFUSALS, judge_refusal
from tests.lab.torchserve.start_lines import judge_line
from tests.lab.torchserve.suites.run import judge_case
from tests.lab.torchserve.suites.table import DIFFERENT, FILES, NOT_RUN
from tests.lab.torchserve.verdict import Outcome, Row


@pytest.mark.parametrize(
    ("given", "accepted", "outcome"),
    [
        (["--start", "--ncs", "--models", "a=b.mar", "c.mar", "--disable-token"], True, Outcome.WORKS),
        (["--start", "models", "a"], False, Outcome.NEITHER),
        (["--start", "--models", "a=", "b.mar"], True, Outcome.REFUSED),
        (["--start", "--no-such-flag"], True, Outcome.DEFECT),
    ],
)
def test_a_start_line_is_judged_by_both_parsers(given: Sequence[str], accepted: bool, outcome: Outcome) -> None:
    assert judge_line("page:1", given, lambda _: accepted).outcome is outcome


@pytest.mark.parametrize(("text", "outcome"), [("batchSize: 4", Outcome.WORKS), ("batchSize: many", Outcome.DEFECT)])
def test_a_model_config_is_judged_as_a_registration_would(tmp_path: Path, text: str, outcome: Outcome) -> None:
    path = tmp_path / "model-config.yaml"
    path.write_text(text)

    assert judge_file("name", path).outcome is outcome


def test_a_refusal_without_a_reason_is_a_defect_and_fails_the_command() -> None:
    refused, defect = Row("x", Outcome.REFUSED), judge_refusal("name", "Something went wrong.")

    assert defect.outcome is Outcome.DEFECT
    assert report.failed({"part": [refused], "other": [defect]}) and not report.failed({"part": [refused]})


def test_each_exception_of_the_tables_has_a_reason_and_is_about_something_that_is_there() -> None:
    assert all(refusal.reason and refusal.instead for refusal in REFUSALS)
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


@pytest.mark.parametrize("name", [report.EXAMPLES, report.SUITES])
def test_both_pages_have_the_same_counts(name: str) -> None:
    begin, end = report.marks(name)
    texts = [page.read_text().partition(begin)[2].partition(end)[0] for page in report.PAGES]

    assert texts[0] == texts[1] != ""
