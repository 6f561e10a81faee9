"""What the folders of extensions below tests/ add to tests and programs that know no extension."""

from importlib import import_module
from typing import Any

from tests.places import ROOT


def modules(name: str) -> list[Any]:
    """Return the modules tests/extensions/EXTENSION/NAME.py of all extensions that have one."""
    found = sorted((ROOT / "tests/extensions").glob(f"*/{name}.py"))
    return [import_module(f"tests.extensions.{file.parent.name}.{name}") for file in found]
