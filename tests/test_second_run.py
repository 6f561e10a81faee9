"""A test of real processes may fail once in CI, if it passes alone; nothing else may."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.second_run import MOST, SecondRun

REAL = "tests/e2e/test_workers.py::test_one"


def finish(plugin: SecondRun, *failed: tuple[str, tuple[str, ...]], status: int = 1) -> int:
    """Let tests fail, each with its keywords, and the session end; return the exit code."""
    for name, keywords in failed:
        plugin.pytest_runtest_logreport(SimpleNamespace(failed=True, nodeid=name, keywords=keywords))  # type: ignore[arg-type]
    session: Any = SimpleNamespace(exitstatus=pytest.ExitCode(status))
    ending = plugin.pytest_sessionfinish(session)
    next(ending)
    assert next(ending, None) is None
    return int(session.exitstatus)


@pytest.mark.parametrize(
    ("failed", "passing", "status"),
    [
        pytest.param([(REAL, ())], {REAL}, 0, id="one that passes alone"),
        pytest.param([("tests/tsctl/a.py::b", ("slow",))], {"tests/tsctl/a.py::b"}, 0, id="one that is marked slow"),
        pytest.param([(REAL, ())], set(), 1, id="one that fails again"),
        pytest.param([(REAL, ()), ("tests/e2e/b.py::c", ())], {REAL}, 1, id="one of two that fails again"),
        pytest.param([("tests/http/a.py::b", ())], {"tests/http/a.py::b"}, 1, id="one without processes"),
        pytest.param([(REAL, ()), ("tests/a.py::b", ())], {REAL, "tests/a.py::b"}, 1, id="one of each"),
        pytest.param([(f"{REAL}{n}", ()) for n in range(MOST + 1)], {f"{REAL}{n}" for n in range(9)}, 1, id="too many"),
    ],
)
def test_a_second_run_decides_where_there_is_one(
    failed: list[tuple[str, tuple[str, ...]]], passing: set[str], status: int, tmp_path: Path
) -> None:
    plugin = SecondRun(tmp_path / "unsteady", passing.__contains__)

    assert finish(plugin, *failed) == status
    if status == 0:
        assert (tmp_path / "unsteady").read_text() == "".join(f"unsteady: {name}\n" for name, _ in failed)


def test_a_run_that_broke_off_stays_broken(tmp_path: Path) -> None:
    plugin = SecondRun(tmp_path / "unsteady", lambda name: True)

    assert finish(plugin, (REAL, ()), status=2) == 2
