"""The hook that compiles a wheel's modules says so, uses all processors, and leaves the sources where it cannot."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import hatch_build
from tests.places import ROOT

MODULES = ["tsctl/daemon/a.py", "tsctl/daemon/b.py"]


class Screen:
    """Hatch's application: remembers what was shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def display_warning(self, line: str) -> None:
        self.lines.append(line)


class Build:
    """One build of a wheel by the hook."""

    def __init__(self, terminal: Path) -> None:
        self.screen = Screen()
        self.terminal = terminal
        self.data: dict[str, Any] = {"force_include": {}}
        config = {"modules": MODULES}
        everything: dict[str, Any] = {"metadata": None, "build_config": None, "app": self.screen}
        self._hook = hatch_build.CompileHook(
            root=str(ROOT), config=config, directory="", target_name="wheel", **everything
        )

    def run(self, version: str = "standard") -> None:
        self._hook.initialize(version, self.data)
        self._hook.finalize(version, self.data, "")


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    monkeypatch.delenv("TSCTL_COMPILE", raising=False)
    monkeypatch.setattr(hatch_build, "TERMINAL", tmp_path / "terminal")
    return Build(tmp_path / "terminal")


def succeeds(modules: Sequence[str], into: Path) -> None:
    file = into / "lib" / "tsctl" / "daemon" / "a.so"
    file.parent.mkdir(parents=True)
    file.touch()


def fails(modules: Sequence[str], into: Path) -> None:
    raise OSError("no cc")


def test_what_was_compiled_is_in_the_wheel_at_its_place(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hatch_build, "compile_modules", succeeds)

    build.run()

    assert list(build.data["force_include"].values()) == ["tsctl/daemon/a.so"]
    assert (build.data["pure_python"], build.data["infer_tag"]) == (False, True)


def test_who_waits_is_told_before_it_begins_on_the_terminal_too(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiles(modules: Sequence[str], into: Path) -> None:
        (line,) = build.screen.lines
        assert line.startswith("compiling 2 modules, ")
        assert build.terminal.read_text() == f"\n{line}\n"

    monkeypatch.setattr(hatch_build, "compile_modules", compiles)

    build.run()


def test_without_a_terminal_it_compiles_as_well(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hatch_build, "TERMINAL", build.terminal / "missing")
    monkeypatch.setattr(hatch_build, "compile_modules", succeeds)

    build.run()

    assert build.data["force_include"]


def test_without_a_compiler_the_sources_are_installed_and_it_says_so(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hatch_build, "compile_modules", fails)

    build.run()

    assert build.data == {"force_include": {}}
    assert build.screen.lines[-1] == "tsctl will serve about a third fewer requests: nothing was compiled: no cc"
    assert "nothing was compiled: no cc" in build.terminal.read_text()


def test_without_a_compiler_it_fails_if_compiling_was_asked_for(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSCTL_COMPILE", "1")
    monkeypatch.setattr(hatch_build, "compile_modules", fails)

    with pytest.raises(OSError, match="no cc"):
        build.run()


@pytest.mark.parametrize(
    ("version", "variable", "compiles"),
    [
        pytest.param("standard", "", True, id="a wheel is compiled"),
        pytest.param("standard", "0", False, id="unless it should not be"),
        pytest.param("editable", "", False, id="an editable installation is not"),
        pytest.param("editable", "1", True, id="unless it should be"),
    ],
)
def test_what_is_compiled(
    build: Build, monkeypatch: pytest.MonkeyPatch, version: str, variable: str, compiles: bool
) -> None:
    monkeypatch.setenv("TSCTL_COMPILE", variable)
    monkeypatch.setattr(hatch_build, "compile_modules", succeeds)

    build.run(version)

    assert bool(build.data["force_include"]) is compiles
    assert bool(build.screen.lines) is compiles


def test_files_are_compiled_side_by_side_and_their_objects_come_in_order() -> None:
    both_run = threading.Barrier(2)

    def compile_files(sources: Sequence[str], *, output_dir: str) -> list[str]:
        both_run.wait(timeout=60)
        return [f"{output_dir}/{source}.o" for source in sources]

    with ThreadPoolExecutor(2) as pool:
        objects = hatch_build.side_by_side(compile_files, pool)(["a.c", "b.c"], output_dir="out")

    assert objects == ["out/a.c.o", "out/b.c.o"]
