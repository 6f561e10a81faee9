"""A function or class of this process is found again by the module that is written for the workers."""

import functools
import importlib.util
import inspect
import linecache
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.handlers.samples import context_of
from tsctl.handlers.sdk.loader import EntryPoint
from tsctl.python.errors import ServeFailed
from tsctl.python.serving.handler_file import MODULE, name_of, write

FACTOR = 3


def handle(data: list[Any], context: Any) -> list[int]:
    return [FACTOR * len(row["body"]) for row in data]


class Doubles:
    def handle(self, data: list[int], context: Any) -> list[int]:
        return [2 * value for value in data]

    class Inner:
        pass


def loaded(folder: Path) -> Any:
    """Load the written module as a worker does; return it."""
    spec = importlib.util.spec_from_file_location(MODULE, folder / f"{MODULE}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = before
    return module


def test_a_function_of_a_module_is_imported(tmp_path: Path) -> None:
    assert write(handle, tmp_path) == f"{MODULE}.py"

    assert loaded(tmp_path).handle is handle
    assert not (tmp_path / f"{MODULE}.pickle").exists()


def test_a_class_becomes_the_one_class_of_the_module(tmp_path: Path) -> None:
    write(Doubles, tmp_path)

    module = loaded(tmp_path)
    assert issubclass(module.Served, Doubles)
    assert (module.Served.__name__, module.Served.__module__) == ("Doubles", MODULE)
    assert not hasattr(module, "handle")
    write(Doubles.Inner, tmp_path)
    assert issubclass(loaded(tmp_path).Served, Doubles.Inner)


def test_a_module_that_only_its_file_leads_to_is_loaded_from_there(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.py"
    file.write_text("def handle(data, context):\n    return [7]\n")
    spec = importlib.util.spec_from_file_location("unknown_to_others", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["unknown_to_others"] = module
    try:
        spec.loader.exec_module(module)
        write(module.handle, tmp_path)
    finally:
        del sys.modules["unknown_to_others"]

    found = loaded(tmp_path).handle
    sys.modules.pop("unknown_to_others")
    assert found([], None) == [7]
    assert found is not module.handle


def within(factor: int) -> Callable[..., list[int]]:
    def handle(data: "list[int]", context: "Any" = None) -> "list[int]":
        return [factor * FACTOR * value for value in data]

    return handle


def test_a_function_or_class_within_a_function_is_pickled_with_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cloudpickle")

    class Local:
        def handle(self, data: list[int]) -> list[int]:
            return [value + FACTOR for value in data]

    write(within(2), tmp_path)
    found = loaded(tmp_path).handle
    write(Local, tmp_path)

    assert found([1, 2]) == [6, 12]
    assert found.__annotations__ == {"data": list[int], "context": Any, "return": list[int]}
    assert loaded(tmp_path).Served().handle([1]) == [4]
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(ServeFailed, match=r"pip install 'tsctl\[notebook\]'"):
        write(within(2), tmp_path)


@pytest.mark.slow
def test_a_script_is_not_run_again(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, pathlib\nfrom tsctl.python.serving.handler_file import write\n"
        "print('runs')\ndef handle(data, context):\n    return data\nwrite(handle, pathlib.Path(sys.argv[1]))\n"
    )
    run = {"cwd": Path(__file__).parents[3], "capture_output": True, "text": True, "check": True}
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run([sys.executable, script, tmp_path], env=environment, **run)  # type: ignore[call-overload]

    done = subprocess.run([sys.executable, tmp_path / f"{MODULE}.py"], env=environment, **run)  # type: ignore[call-overload]

    assert done.stdout == ""


def test_what_cannot_be_pickled_is_named(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    file = (tmp_path / "x").open("w")

    def handle(data: Any, context: Any) -> Any:
        return file

    with file, pytest.raises(ServeFailed, match=r"`test_what_.*handle` cannot be pickled: .*; move it into a module"):
        write(handle, tmp_path)


@pytest.mark.parametrize(
    ("name", "expected"), [("handle", "handle"), ("My_Net", "my-net"), ("_", "model"), ("é", "model")]
)
def test_a_models_name(name: str, expected: str) -> None:
    def target() -> None: ...

    target.__name__ = name

    assert name_of(target) == expected


def test_a_pickled_function_keeps_its_place_and_brings_the_source_that_no_worker_could_read(tmp_path: Path) -> None:
    source = "def handle(data, context):\n    return [len(each) for each in data]\n"
    cell = "/tmp/ipykernel_1/2.py"
    space: dict[str, Any] = {"__name__": "__main__"}
    linecache.cache[cell] = (len(source), None, source.splitlines(True), cell)
    exec(compile(source, cell, "exec"), space)  # as a notebook runs its cells
    write(space["handle"], tmp_path)
    del linecache.cache[cell]

    found = loaded(tmp_path).handle

    assert (found.__code__.co_filename, inspect.getsource(found)) == (cell, source)
    entry = EntryPoint(None, found)
    entry.initialize(context_of(tmp_path))
    assert len(entry.notes) == 1


@pytest.mark.parametrize(
    ("target", "way"),
    [
        pytest.param(torch.nn.Linear(1, 1), "def predict(x: torch.Tensor) -> torch.Tensor: return model", id="network"),
        pytest.param(functools.partial(handle), "pass a function that calls it", id="partial"),
        pytest.param(Doubles().handle, "pass a function that calls it, or its class", id="method"),
        pytest.param(3, "pass a function, a class, or the path", id="anything else"),
    ],
)
def test_what_cannot_be_written_is_refused_with_what_can(target: Any, way: str, tmp_path: Path) -> None:
    with pytest.raises(ServeFailed, match=re.escape(way)):
        write(target, tmp_path)
