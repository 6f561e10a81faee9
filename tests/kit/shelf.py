"""What the folders of extensions below tests/ add to tests and programs that know no extension."""

from importlib import import_module
from typing import Any

import pytest

from tests.places import ROOT


def modules(name: str) -> list[Any]:
    """Return the modules tests/extensions/EXTENSION/NAME.py of all extensions that have one."""
    found = sorted((ROOT / "tests/extensions").glob(f"*/{name}.py"))
    return [import_module(f"tests.extensions.{file.parent.name}.{name}") for file in found]


def needs(name: str) -> pytest.MarkDecorator:
    """Return the mark of a test of one extension that needs another one, too, which may be left out."""
    there = (ROOT / "daemon/extensions" / name).exists()
    return pytest.mark.skipif(not there, reason=f"this daemon has no {name}")
