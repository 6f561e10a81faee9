"""`import ts` works in every program of an environment with tsctl, and takes nothing from an installed torchserve."""

import os
import subprocess
import sys
from pathlib import Path

import hatchling
import pytest

from tests.environments import make_environment

ROOT = Path(__file__).parents[3]

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

    assert (done.stdout, done.stderr) == ("tsctl.handlers.torchserve.mock_context\n", "")


@pytest.mark.slow
def test_nothing_of_tsctl_is_imported_before_it_is_asked_for(tmp_path: Path) -> None:
    done = run("import sys; print([name for name in sys.modules if name.startswith('ts')])", tmp_path)

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
def test_beside_another_package_called_tsctl_there_is_no_ts(tmp_path: Path) -> None:
    (tmp_path / "tsctl").mkdir()
    (tmp_path / "tsctl" / "__init__.py").write_text("")

    done = run("import ts", tmp_path)

    assert done.stderr.endswith("ModuleNotFoundError: No module named 'ts'\n")


@pytest.mark.slow
def test_an_error_in_another_package_called_tsctl_is_none_of_who_tries_ts(tmp_path: Path) -> None:
    (tmp_path / "tsctl.py").write_text("raise RuntimeError('no GPU')\n")

    done = run("try:\n    import ts\nexcept ImportError:\n    print('without')", tmp_path)

    assert (done.stdout, done.stderr) == ("without\n", "")


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize(
    "options",
    [["--no-index", "--no-build-isolation"], ["--editable"]],  # pip fetches what an editable build needs
    ids=["wheel", "editable"],
)
def test_each_kind_of_installation_brings_the_names_and_takes_them_with_it(tmp_path: Path, options: list[str]) -> None:
    python = make_environment(tmp_path / "environment", [])
    site = next((tmp_path / "environment" / "lib").glob("python3*/site-packages"))
    (site / "project.pth").unlink()  # nothing of this environment
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    install = ["install", "--quiet", "--no-deps", *options, str(ROOT)]

    def names() -> str:
        done = subprocess.run([python, "-c", "import ts; print(ts.__name__)"], cwd=tmp_path, capture_output=True)
        return (done.stdout or done.stderr.splitlines()[-1]).decode().strip()

    environment = os.environ | {"TSCTL_COMPILE": "0"}
    if "--no-build-isolation" in options:  # then hatchling is that of this environment
        environment["PYTHONPATH"] = str(Path(hatchling.__path__[0]).parent)
    subprocess.run([*pip, *install], env=environment, check=True, timeout=300)
    assert names() == "ts"
    subprocess.run([*pip, "uninstall", "--quiet", "--yes", "tsctl"], check=True, timeout=60)

    assert names() == "ModuleNotFoundError: No module named 'ts'"
    assert not list(site.glob("*.pth"))
