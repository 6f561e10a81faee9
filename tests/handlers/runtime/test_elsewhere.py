"""`import ts` works in every program of an environment with tsctl, and takes nothing from an installed torchserve."""

import subprocess
import sys
from pathlib import Path

import pytest

MOCK = "from ts.torch_handler.unit_tests.test_utils.mock_context import MockContext"


def run(program: str, folder: Path, *, before: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, with another one first on its path."""
    environment = {} if before is None else {"PYTHONPATH": str(before)}
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def torchserve(tmp_path: Path) -> Path:
    """A folder with another package called `ts`, which lacks most of ours."""
    package = tmp_path / "other" / "ts"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = 'theirs'\n")
    return package.parent


@pytest.mark.slow
def test_the_tests_of_a_handler_import_torchserves_names(tmp_path: Path) -> None:
    done = run(f"{MOCK}; print(MockContext.__module__)", tmp_path)

    assert (done.stdout, done.stderr) == ("handlers.torchserve.mock_context\n", "")


@pytest.mark.slow
def test_nothing_of_tsctl_is_imported_before_it_is_asked_for(tmp_path: Path) -> None:
    done = run("import sys; print([name for name in sys.modules if name.startswith(('handlers', 'ts'))])", tmp_path)

    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.slow
def test_an_installed_torchserve_is_found_first(tmp_path: Path, torchserve: Path) -> None:
    done = run("import ts; print(ts.__version__)", tmp_path, before=torchserve)

    assert done.stdout == "theirs\n"


@pytest.mark.slow
def test_what_an_installed_torchserve_lacks_is_not_filled_with_ours(tmp_path: Path, torchserve: Path) -> None:
    done = run(MOCK, tmp_path, before=torchserve)

    assert "ModuleNotFoundError: No module named 'ts.torch_handler'" in done.stderr


@pytest.mark.slow
def test_beside_another_package_called_handlers_there_is_no_ts(tmp_path: Path) -> None:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "__init__.py").write_text("")

    done = run("import ts", tmp_path)

    assert done.stderr.endswith("ModuleNotFoundError: No module named 'ts'\n")
