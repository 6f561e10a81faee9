"""`import ts` works in every program of an environment with tsctl, and takes nothing from an installed torchserve."""

import os
import subprocess
import sys
from pathlib import Path

import hatchling
import pytest

from tests.environments import make_environment
from tests.kit.archives import write_files

ROOT = Path(__file__).parents[3]

MOCK = "from ts.torch_handler.unit_tests.test_utils.mock_context import MockContext"


def run(program: str, folder: Path, *, before: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, with another one first on its path."""
    environment = {} if before is None else {"PYTHONPATH": str(before)}
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


THEIRS = {"other/ts/__init__.py": b"__version__ = 'theirs'\n"}  # another package called `ts`, which lacks most of ours
NO_TS = "ModuleNotFoundError: No module named 'ts"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "program", "said"),
    [
        pytest.param(
            {}, f"{MOCK}; print(MockContext.__module__)", "tsctl.handlers.torchserve.mock_context\n", id="names"),
        pytest.param(
            {}, "import sys; print([name for name in sys.modules if name.startswith('ts')])", "[]\n",
            id="nothing of tsctl is imported before it is asked for"),
        pytest.param(THEIRS, "import ts; print(ts.__version__)", "theirs\n", id="a torchserve that is there is first"),
        pytest.param(THEIRS, MOCK, f"{NO_TS}.torch_handler'\n", id="what it lacks is not filled with ours"),
        pytest.param({"tsctl/__init__.py": b""}, "import ts", f"{NO_TS}'\n", id="beside another tsctl there is no ts"),
        pytest.param(
            {"tsctl.py": b"raise RuntimeError('no GPU')\n"},
            "try:\n    import ts\nexcept ImportError:\n    print('without')", "without\n",
            id="whose error is none of who tries ts"),
    ],
)  # fmt: skip
def test_what_an_import_finds(tmp_path: Path, files: dict[str, bytes], program: str, said: str) -> None:
    write_files(tmp_path, files)

    done = run(program, tmp_path, before=tmp_path / "other" if files is THEIRS else None)

    assert (done.stdout or done.stderr.splitlines()[-1] + "\n", bool(done.stderr)) == (said, said.startswith(NO_TS))


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
