"""The names that modules had before: who began before, or was written before, still finds them."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import handlers
from handlers.moved import MOVED

ROOT = Path(handlers.__file__).parent
# What a worker or template that began before may import only later: from files, since it has no table of ours.
LATE = (
    "handlers.defaults.base", "handlers.defaults.vision", "handlers.defaults.image_classifier",
    "handlers.defaults.object_detector", "handlers.defaults.image_segmenter", "handlers.defaults.text",
    "handlers.defaults.text_classifier", "handlers.micro_batching", "handlers.pipeline", "handlers.streaming",
)  # fmt: skip
# A process that began before: our package without its table, and modules under their old names.
BEFORE = f"""
import importlib, importlib.util, sys, types
package = types.ModuleType("handlers")
package.__path__ = [{str(ROOT)!r}]
sys.modules["handlers"] = package
spec = importlib.util.spec_from_file_location("handlers.errors", {str(ROOT / "sdk" / "errors.py")!r})
old = importlib.util.module_from_spec(spec)
sys.modules["handlers.errors"] = old
spec.loader.exec_module(old)
runtime = types.ModuleType("handlers.runtime")  # a module then, a package now
runtime.Runtime = runtime.SendPieces = object
runtime.no_pieces = None
sys.modules["handlers.runtime"] = runtime
"""


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(("old", "new"), [(old, new) for old, new in MOVED.items() if not new.startswith(old)])
def test_an_old_name_is_the_same_module(old: str, new: str) -> None:
    assert importlib.import_module(old) is importlib.import_module(new)


@pytest.mark.heavy
@pytest.mark.parametrize("old", ["handlers.streaming", "handlers.errors", "handlers.defaults.base", "handlers.running"])
def test_an_old_name_may_be_the_first_that_is_imported(old: str) -> None:
    program = f"import importlib; found = importlib.import_module({old!r}); "

    assert (
        run(f"{program}print(found.__name__, found is importlib.import_module({MOVED[old]!r}))") == f"{MOVED[old]} True"
    )


def test_a_module_that_had_another_name_keeps_its_own() -> None:
    module = importlib.import_module("handlers.defaults.base")

    assert module.__name__ == "handlers.builtin.base"
    assert module.__spec__ is not None
    assert module.__spec__.name == "handlers.builtin.base"


def test_a_name_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("handlers.defaults.nothing")


@pytest.mark.heavy
@pytest.mark.parametrize("name", LATE)
def test_a_process_that_began_before_finds_what_it_imports_late(name: str) -> None:
    found = run(f"{BEFORE}\nprint(importlib.import_module({name!r}).__name__)")

    assert found == MOVED[name]


@pytest.mark.heavy
def test_a_process_that_began_before_has_each_class_only_once() -> None:
    program = f"{BEFORE}\nimportlib.import_module('handlers.defaults.object_detector')\n"

    assert run(f"{program}print(sys.modules['handlers.sdk.errors'] is old)") == "True"
    assert run(f"{program}from handlers.sdk import errors; print(errors is old)") == "True"
