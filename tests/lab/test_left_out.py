"""That each extension is left out where all that could name it is there, and of all that Python and mypy find."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.environments import make_environment_of
from tests.lab.left_out import PROGRAMS, SHELVES, TORCHSERVE, gone, libraries, with_libraries
from tests.places import ROOT


def test_each_night_each_is_left_out_where_all_others_are_there_in_one_of_its_runs() -> None:
    workflow = yaml.safe_load((ROOT / PROGRAMS[1]).read_text())
    commands = [each.split() for each in workflow["jobs"]["proof"]["strategy"]["matrix"]["command"]]
    folders = {file.parent.name for shelf in SHELVES for file in (ROOT / shelf).glob("*/__init__.py")}
    left = sorted(folders - {*libraries()})
    # Where some have been left out, the workflow still names them.
    runs = [[name for name in words[4:] if name in left] for words in commands if words[3:4] == ["leave-out"]]

    without_it = {name: [gone(run) for run in runs if name in run] for name in left}
    assert [name for name in left if not without_it[name]] == []
    assert {name for run in runs for name in with_libraries(run)} >= {*libraries()}
    assert {file for name in left for file in set[str].intersection(*without_it[name]) - gone([name])} == set()


def test_a_library_of_the_shelf_goes_with_the_last_extension_that_imports_it() -> None:
    for library, users in libraries().items():
        assert library in with_libraries(users)
        assert not any(library in with_libraries(users - {user}) for user in users)
        with pytest.raises(ValueError, match=f"`{library}` is no extension, but a library of "):
            gone([library])


@pytest.mark.slow
def test_the_environment_of_a_copy_does_not_find_what_the_copy_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)  # may name the original; `leave-out` removes it, too
    tree = tmp_path / "tree"
    for name, text in {
        "tsctl/__init__.py": "",
        "tsctl/py.typed": "",
        "tsctl/__main__.py": "def main() -> int:\n    return 42\n",
        "tsctl/broken.py": "import tsctl.__main__\nimport tsctl.client\n",  # the original has both
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)

    python = make_environment_of(tree, tmp_path / "environment", [ROOT / TORCHSERVE])

    checked = subprocess.run(
        [python, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}", "tsctl/broken.py"],
        cwd=tree, capture_output=True, text=True,
    )  # fmt: skip
    assert checked.stdout.splitlines()[0] == (
        'tsctl/broken.py:2: error: Cannot find implementation or library stub for module named "tsctl.client"'
        "  [import-not-found]"
    )
    assert subprocess.run([python.parent / "tsctl"], cwd=tmp_path).returncode == 42
