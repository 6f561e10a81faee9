"""The verdict of TorchServe's own cases is read from pytest's report, and the programs call tsctl."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.lab.torchserve.suites.__main__ import main
from tests.lab.torchserve.suites.programs import write_programs
from tests.lab.torchserve.suites.run import judge_case, not_run, read_report
from tests.lab.torchserve.suites.table import DIFFERENT, FILES, NOT_RUN
from tests.lab.torchserve.verdict import Outcome

REPORT = """<testsuites><testsuite>
<testcase name="passes"/>
<testcase name="skips"><skipped message="needs a GPU"/></testcase>
<testcase name="fails"><failure message="assert 1 == 2">trace</failure></testcase>
<testcase name="lacks"><error message="failed on setup">No module named 'onnxscript'</error></testcase>
</testsuite></testsuites>"""


def test_a_case_is_judged_by_its_failure() -> None:
    rows = {row.name: row for row in read_report("test_x.py", REPORT)}

    assert {name: row.outcome for name, row in rows.items()} == {
        "test_x.py::passes": Outcome.WORKS,
        "test_x.py::fails": Outcome.DEFECT,
        "test_x.py::lacks": Outcome.UNJUDGED,
    }
    assert rows["test_x.py::fails"].why == "assert 1 == 2"


def test_a_case_of_the_table_is_different_on_purpose_with_its_reason() -> None:
    message = "AssertionError: Timeout waiting for 'Backend worker error' (waited 30 seconds)"
    row = judge_case("test_startup_timeout.py::test_startup_timeout[5]", message)

    assert row.outcome is Outcome.PURPOSE and "startup timeout" in row.why
    assert judge_case("test_startup_timeout.py::test_startup_timeout[30]", message).outcome is Outcome.DEFECT


def test_another_failure_of_a_case_of_the_table_is_a_defect() -> None:
    message = "AssertionError: Timeout waiting for 'Model server started.'"

    assert judge_case("test_startup_timeout.py::test_startup_timeout[5]", message).outcome is Outcome.DEFECT


def test_a_file_is_run_or_not_run_for_a_reason() -> None:
    assert not set(FILES) & NOT_RUN.keys() and all(NOT_RUN.values())
    assert {row.outcome for row in not_run()} == {Outcome.PURPOSE}


def test_each_difference_is_about_a_file_that_is_run_and_has_a_reason() -> None:
    assert all(any(re.match(each.cases.partition("::")[0], file) for file in FILES) for each in DIFFERENT)
    assert all(each.message and each.why for each in DIFFERENT)


def call(folder: Path, program: str, *words: str, address: str = "") -> str:
    """Run a program with a `tsctl` that prints its words and the management address; return them."""
    write_programs(folder)
    stand_in = folder / "tsctl"
    stand_in.write_text('#!/bin/bash\necho "$@$TSCTL_MANAGEMENT_ADDRESS"\n')
    stand_in.chmod(0o755)
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "TSCTL_MANAGEMENT_ADDRESS": address}
    return subprocess.run(
        [folder / program, *words], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_torchserve_is_tsctl_without_the_word_start(tmp_path: Path) -> None:
    lines = call(tmp_path, "torchserve", "--start", "--ncs", "--models", "a b").splitlines()

    assert sorted(lines) == ["Model server started.", "run --ncs --models a b"]


@pytest.mark.parametrize(("flags", "served"), [((), ""), (("--disable-token-auth",), " on TCP")])
def test_management_is_on_tcp_only_where_torchserve_would_ask_for_no_token(
    tmp_path: Path, flags: tuple[str, ...], served: str
) -> None:
    lines = call(tmp_path, "torchserve", "--start", *flags, address=" on TCP").splitlines()

    assert " ".join(("run", *flags)) + served in lines


def test_stopping_is_tsctls(tmp_path: Path) -> None:
    assert call(tmp_path, "torchserve", "--stop", "--foreground") == "stop\n"


def test_the_archiver_is_tsctls(tmp_path: Path) -> None:
    assert call(tmp_path, "torch-model-archiver", "--model-name", "a") == "archive --model-name a\n"


def test_an_unknown_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test_gone.py"]) == 2
    assert "no file is called test_gone.py" in capsys.readouterr().err
