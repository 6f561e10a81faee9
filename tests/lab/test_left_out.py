"""What is left of the pages and of the list, where an extension is left out."""

import pytest

from tests.lab.left_out import CHECKED_BY, LIST, PROGRAMS, unlinked, verbs_of, without, without_program
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
    with pytest.raises(ValueError, match="`nothing` is none of the extensions"):
        without(text, "nothing")


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
