"""What is left of the pages and of the list, where an extension is left out; and that each one is, of what matters."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.environments import make_environment_of
from tests.lab.left_out import (
    CHECKED_BY,
    LIST,
    PROGRAMS,
    SHELVES,
    TORCHSERVE,
    gone,
    unlinked,
    verbs_of,
    without,
    without_program,
)
from tests.places import ROOT
from tsctl.extension import extensions, names


def test_links_to_its_guide_and_paths_of_its_folders_become_text() -> None:
    page = (
        "See [the cache](guides/cache.md#promised), `docs/guides/cache.md`, `tests/extensions/cache/test_served.py`,"
        " `tests/extensions/cached.py` and [keys](guides/keys.md)."
    )

    assert unlinked(page, "cache") == (
        "See the cache, docs/guides/cache.md, tests/extensions/cache/test_served.py, `tests/extensions/cached.py` and"
        " [keys](guides/keys.md)."
    )


def test_its_verbs_are_no_commands() -> None:
    page = "`tsctl optimize net`, `tsctl optimizer`\ntsctl optimize net --apply\nand tsctl optimize"

    assert {verb for name in names() for verb in verbs_of(name)} == {
        verb for each in extensions() for verb in each.verbs
    }
    assert verbs_of("nothing") == ()
    assert unlinked(page, "optimizing", ["optimize"]) == (
        "`optimize net`, `tsctl optimizer`\noptimize net --apply\nand tsctl optimize"
    )


def test_its_words_leave_the_list() -> None:
    text = (ROOT / LIST).read_text()
    name = next(iter(line.split()[1].split(".")[-1] for line in text.splitlines() if ".extensions." in line))

    assert f".{name} import" in text and f".{name} import" not in without(text, name)
    with pytest.raises(ValueError, match="`nothing` is no extension: neither daemon/extensions nor tsctl/extensions"):
        gone(["nothing"])


@pytest.mark.parametrize("name", CHECKED_BY)
def test_a_program_that_checks_its_rules_goes_with_it(name: str) -> None:
    folder, program = CHECKED_BY[name]
    before = [(ROOT / each).read_text() for each in PROGRAMS]
    table, night = (without_program(text, program) for text in before)

    assert compile(table, PROGRAMS[0], "exec") and program not in table + night
    assert table.count("_lab(") == before[0].count("_lab(") - (program in before[0])
    assert night.count("- python -m") == before[1].count("- python -m") - (program in before[1])
    assert unlinked(f"`python -m tests.lab {program} --seed 7`, `{folder}/test_runs.py`", name) == (
        f"`{program} --seed 7`, {folder}/test_runs.py"
    )


def test_each_night_each_is_left_out_where_all_others_are_there_in_one_of_its_runs() -> None:
    workflow = yaml.safe_load((ROOT / PROGRAMS[1]).read_text())
    commands = [each.split() for each in workflow["jobs"]["proof"]["strategy"]["matrix"]["command"]]
    left = [file.parent.name for shelf in SHELVES for file in (ROOT / shelf).glob("*/__init__.py")]
    # Where some have been left out, the workflow still names them.
    runs = [[name for name in words[4:] if name in left] for words in commands if words[3:4] == ["leave-out"]]

    without_it = {name: [gone(run) for run in runs if name in run] for name in left}
    assert [name for name in left if not without_it[name]] == []
    assert {file for name in left for file in set[str].intersection(*without_it[name]) - gone([name])} == set()


@pytest.mark.slow
def test_the_environment_of_a_copy_does_not_find_what_the_copy_lacks(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name, text in {
        "tsctl/__init__.py": "",
        "tsctl/py.typed": "",
        "tsctl/cli.py": "def main() -> int:\n    return 42\n",
        "tsctl/broken.py": "import tsctl.cli\nimport tsctl.client\n",  # the original has both
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
