"""`import tsctl` loads nothing, and has every public name."""

import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import tsctl


@pytest.mark.parametrize("name", tsctl.__all__)
def test_a_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(tsctl, name)

    assert value.__name__ == name
    assert value.__doc__
    assert name in dir(tsctl)


def test_another_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="module `tsctl` has no attribute `Nothing`"):
        _ = tsctl.Nothing  # type: ignore[attr-defined]


def test_every_error_of_the_library_is_public() -> None:
    module = import_module("tsctl.python.errors")
    errors = {name for name, value in vars(module).items() if isinstance(value, type)}

    assert errors <= set(tsctl.__all__)
    assert all(issubclass(getattr(module, name), tsctl.TsctlError) for name in errors)


@pytest.mark.slow
def test_the_plugin_of_pytest_is_registered_and_imports_nothing_but_pytest() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    plugin = project["entry-points"]["pytest11"]["tsctl"]
    program = f"import sys, pytest; before = set(sys.modules); import {plugin}; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert hasattr(import_module(plugin), "tsctl_serve")
    assert set(done.stdout.split()) == {"tsctl", "tsctl.python", plugin}


def test_the_version_is_that_of_the_installation() -> None:
    assert tsctl.__version__ == version("tsctl")


@pytest.mark.slow
def test_importing_tsctl_imports_nothing_else() -> None:
    program = "import sys; before = set(sys.modules); import tsctl; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["tsctl"]
