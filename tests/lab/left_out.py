"""`python -m tests.lab leave-out NAME [--sources] [ARGUMENT OF PYTEST …]`: delete an extension, and see the rest pass.

A copy of the tree loses the extension's folders, what others' tests tell of both (`with_NAME.txt`), a program of the
laboratory that checks its rules, and its words in daemon/server/extensions.py; its generated pages are written anew,
links to its guide become text, and its verbs words. Then lint, types, and the tests of `make test` run there, on
compiled modules, or with --sources as `pytest` runs them here.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from tests.compiled import listed
from tests.places import ROOT

LIST = "daemon/server/extensions.py"
PROGRAMS = ("tests/lab/programs.py", ".github/workflows/nightly.yml")
# Programs of the laboratory that check an extension's rules, and go with it: their folder, and their name there.
CHECKED_BY = dict.fromkeys(("quarantine", "sequences"), ("tests/lab/simulation", "simulate-faults"))


def places_of(name: str) -> tuple[str, ...]:
    """Return the folders and files of an extension, as far as it may have them."""
    folders = [f"{program}/extensions/{name}" for program in ("daemon", "handlers", "tsctl", "tests")]
    return (*folders, *CHECKED_BY.get(name, ())[:1], f"docs/guides/{name}.md")


def without(text: str, name: str) -> str:
    """Return the list of extensions without one.

    Raises:
        ValueError: the list does not have it.
    """
    found = re.search(rf"^from tsctl\.daemon\.extensions\.{name} import (\w+)\n", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"`{name}` is none of the extensions in {LIST}")
    return re.sub(rf"^    {found[1]}\(\),.*\n", "", text.replace(found[0], ""), flags=re.MULTILINE)


def without_program(text: str, program: str) -> str:
    """Return the table of the laboratory's programs, or the list of those of each night, without one."""
    row, line = rf'^    "{program}": .*\n(?:     .*\n)*    \),\n', rf"^ *- python -m tests\.lab {program}\b.*\n"
    return re.sub(f"{row}|{line}", "", text, flags=re.MULTILINE)


def verbs_of(name: str) -> Sequence[str]:
    """Return the verbs that an extension adds to the command line."""
    if not (ROOT / "tsctl/extensions" / name).exists():
        return ()
    return tuple(import_module(f"tsctl.extensions.{name}").COMMAND_LINE.verbs)


def unlinked(text: str, name: str, verbs: Sequence[str] = ()) -> str:
    """Return a page whose links to an extension's guide, paths of its folders, and commands that go are text."""
    if verbs:
        text = re.sub(rf"(^|`)tsctl ({'|'.join(verbs)})\b", r"\1\2", text, flags=re.MULTILINE)
    if name in CHECKED_BY:
        text = re.sub(rf"(^|`)python -m tests\.lab ({CHECKED_BY[name][1]})\b", r"\1\2", text, flags=re.MULTILINE)
    for place in places_of(name):
        text = re.sub(rf"`({place}(?:/[^`\s]*)?)`", r"\1", text)
    return re.sub(rf"\[([^\]]+)\]\((?:[^)\s]*/)?{name}\.md(?:#[^)\s]*)?\)", r"\1", text)


def leave_out(name: str, tree: Path) -> None:
    """Copy all that git would have, without an extension."""
    gone, verbs = places_of(name), verbs_of(name)
    for each in listed():
        if each.endswith(f"/with_{name}.txt"):
            continue
        if not each.startswith(tuple(f"{place}/" for place in gone)) and each not in gone:
            (tree / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / each, tree / each, follow_symlinks=False)
            if each.endswith(".md"):
                (tree / each).write_text(unlinked((ROOT / each).read_text(), name, verbs))
    (tree / LIST).write_text(without((ROOT / LIST).read_text(), name))
    for each in PROGRAMS if name in CHECKED_BY else ():
        (tree / each).write_text(without_program((ROOT / each).read_text(), CHECKED_BY[name][1]))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab leave-out", description=__doc__.partition("\n")[0])
    parser.add_argument("name")
    parser.add_argument("--sources", action="store_true", help="run the tests on the sources: quicker")
    chosen, others = parser.parse_known_args(arguments)
    # Else `make` in the copy finds this environment older than pyproject.toml there, and installs the copy in it.
    subprocess.run(["make", "--silent", ".venv/.installed"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory(prefix=f"without-{chosen.name}-") as folder:
        tree = Path(folder)
        leave_out(chosen.name, tree)
        (tree / ".venv").symlink_to(ROOT / ".venv")
        subprocess.run(["git", "init", "--quiet", tree], check=True)  # what there is, is asked of git
        subprocess.run(["git", "-C", tree, "add", "--all"], check=True)
        tests = ["pytest"] if chosen.sources else ["tests.compiled", "-m", "compiled and not heavy and not browser"]
        commands = [["tests.lab", "references"], ["ruff", "check"], ["mypy"], [*tests, *others]]
        for command in commands:
            print(f"without {chosen.name}: {' '.join(command)}", flush=True)
            code = subprocess.run(
                [sys.executable, "-m", *command], cwd=tree, env=os.environ | {"PYTHONPATH": folder}
            ).returncode
            if code:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
