"""`python -m tests.lab leave-out NAME … [--sources] [-- ARGUMENT OF PYTEST …]`: delete extensions; the rest passes.

A copy of the tree loses the extensions' folders, those of libraries of the shelf that nothing else uses, what others'
tests tell of both (`with_NAME.txt`, `test_with_NAME.py`; of three `with_NAME_and_NAME.txt`), a program of the
laboratory that checks their rules, and their words in daemon/server/extensions.py; its generated pages are written
anew, links to their guides become text, and their verbs words. Then lint, types, and the tests of `make test` run
there: on a wheel those that touch compiled modules, unless --sources is given. The copy has an environment of its own,
in which nothing of the original is found, by Python or by mypy.

Several together cost as much as one, but hide what the others would show about each: their own tests, their types and
their pages are gone, too. So the nightly workflow leaves out each extension twice, in two groups that have nothing
else in common, as the row and the column of a table; `live` and `prometheus` alone, since tests of many extensions tell
of both, and `prometheus` again with `torchserve_logs`, which shares a library with it. For each extension, all that is
not its own is there in one of its runs, and sees the extension missing; tests/lab/test_left_out.py holds that of the
files that git has. What remains hidden needs three: where one extension is missing, two others fail only together, one
of its row and one of its column.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

from tests.compiled import listed
from tests.environments import make_environment_of
from tests.places import ROOT

SHELVES = ("daemon/extensions", "tsctl/extensions")
TORCHSERVE = "handlers/torchserve/tsctl-torchserve.pth"  # installed beside the packages
COMPILED = "compiled and not heavy and not browser and not ray and not systemd"  # of the tests of `make test`
LIST = "daemon/server/extensions.py"
PROGRAMS = ("tests/lab/programs.py", ".github/workflows/nightly.yml")
# Programs of the laboratory that check an extension's rules, and go with it: their place, and their name there.
CHECKED_BY = dict.fromkeys(("quarantine", "sequences"), ("tests/lab/simulation", "simulate-faults")) | {
    "prometheus": ("tests/e2e/test_alerts.py", "alerts")
}


def places_of(name: str) -> tuple[str, ...]:
    """Return the folders and files of an extension, as far as it may have them."""
    folders = [f"{program}/extensions/{name}" for program in ("daemon", "handlers", "tsctl", "tests")]
    return (*folders, *CHECKED_BY.get(name, ())[:1], f"docs/guides/{name}.md")


def libraries() -> dict[str, set[str]]:
    """Return the folders of the shelf that have no word in the list → the other folders whose files import each."""
    shelf, known = ROOT / SHELVES[0], (ROOT / LIST).read_text()
    texts = {
        file.parent.name: "".join(each.read_text() for each in file.parent.rglob("*.py"))
        for file in shelf.glob("*/__init__.py")
    }
    return {
        name: {other for other, text in texts.items() if other != name and f"daemon.extensions.{name}." in text}
        for name in texts
        if without(known, name) == known
    }


def with_libraries(names: Iterable[str]) -> list[str]:
    """Return these extensions, and the libraries of which they are the only users."""
    return [*names, *(library for library, users in libraries().items() if users <= {*names})]


def without(text: str, name: str) -> str:
    """Return the list of extensions without one; one of the command line alone is not in it."""
    found = re.search(rf"^from tsctl\.daemon\.extensions\.{name} import (\w+)\n", text, re.MULTILINE)
    if found is None:
        return text
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


def together_of(file: str) -> Sequence[str]:
    """Return the extensions that a file of tests needs beside its own: `with_routing_and_live.txt`."""
    named = re.search(r"/(?:test_)?with_(\w+)\.\w+$", file)
    return named[1].split("_and_") if named else ()


def gone(names: Iterable[str]) -> set[str]:
    """Return the files that go with these extensions.

    Raises:
        ValueError: one of them is none.
    """
    found, files, shared = set[str](), listed(), libraries()
    for name in names:
        if not any((ROOT / folder / name / "__init__.py").exists() for folder in SHELVES):
            raise ValueError(f"`{name}` is no extension: neither {' nor '.join(SHELVES)} has it")
        if name in shared:
            raise ValueError(f"`{name}` is no extension, but a library of {', '.join(sorted(shared[name]))}")
    for name in with_libraries(names):
        own = places_of(name)
        below = tuple(f"{place}/" for place in own)
        found |= {each for each in files if each in own or each.startswith(below) or name in together_of(each)}
    return found


def leave_out(names: Sequence[str], tree: Path) -> None:
    """Copy all that git would have, without these extensions.

    Raises:
        ValueError: one of them is none.
    """
    left_out, names = gone(names), with_libraries(names)
    verbs = {name: verbs_of(name) for name in names}
    for each in listed():
        if each in left_out:
            continue
        (tree / each).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / each, tree / each, follow_symlinks=False)
        if each.endswith(".md"):
            text = (ROOT / each).read_text()
            for name in names:
                text = unlinked(text, name, verbs[name])
            (tree / each).write_text(text)
    for name in names:
        (tree / LIST).write_text(without((tree / LIST).read_text(), name))
        for each in PROGRAMS if name in CHECKED_BY else ():
            (tree / each).write_text(without_program((tree / each).read_text(), CHECKED_BY[name][1]))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab leave-out", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--sources", action="store_true", help="run the tests on the sources: quicker")
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    chosen, others = parser.parse_args(arguments[:cut]), arguments[cut + 1 :]
    with tempfile.TemporaryDirectory(prefix="left-out-") as folder:
        tree = Path(folder)
        leave_out(chosen.names, tree)
        subprocess.run(["git", "init", "--quiet", tree], check=True)  # what there is, is asked of git
        subprocess.run(["git", "-C", tree, "add", "--all"], check=True)
        python = make_environment_of(tree, tree / ".venv", [tree / TORCHSERVE])
        on_wheel = [["pytest", "-m", f"not {COMPILED}"], ["tests.compiled", "-m", COMPILED]]
        tests = [["pytest"]] if chosen.sources else on_wheel
        commands = [["tests.lab", "references"], ["ruff", "check"], ["mypy"], *([*each, *others] for each in tests)]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        path = os.pathsep.join(map(str, (python.parent, ROOT / ".venv/bin", environment.get("PATH", os.defpath))))
        for command in commands:
            print(f"without {', '.join(chosen.names)}: {' '.join(command)}", flush=True)
            code = subprocess.run([python, "-m", *command], cwd=tree, env=environment | {"PATH": path}).returncode
            if code:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
