"""Modules that a handler's file meets; which handler is found is in `conversations/loading.txt` and `choice.txt`."""

import copy
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tsctl
from tests.handlers.samples import write
from tsctl.handlers.sdk.loader import import_file, load_handler

CLASS = """
    class Handler:
        def initialize(self, context):
            self.name = context.model_name
        def handle(self, data, context):
            return [self.name] * len(data)
"""


@pytest.mark.parametrize("handler", ["installed_handler", "installed.inner"])
def test_an_installed_module_is_found_too(model_dir: Path, handler: str) -> None:
    elsewhere = model_dir / "site-packages"
    (elsewhere / "installed").mkdir(parents=True)
    write(elsewhere / "installed_handler.py", CLASS)
    write(elsewhere / "installed" / "inner.py", CLASS)
    sys.path.append(str(elsewhere))

    entry = load_handler(handler, model_dir)

    assert type(entry.instance).__module__ == handler


@pytest.mark.parametrize("module", [copy, tsctl])
def test_a_file_of_that_name_leaves_the_standard_library_and_our_package_alone(
    module: ModuleType, model_dir: Path
) -> None:
    write(model_dir / f"{module.__name__}.py", CLASS)

    entry = load_handler(f"{module.__name__}.py", model_dir)

    assert type(entry.instance).__name__ == "Handler"
    assert sys.modules[module.__name__] is module


def test_a_file_that_fails_to_import_is_not_left_half_imported(model_dir: Path) -> None:
    write(model_dir / "mine.py", "    raise RuntimeError('not today')\n")

    with pytest.raises(RuntimeError, match="not today"):
        load_handler("mine.py", model_dir)
    assert "mine" not in sys.modules


def test_a_file_that_the_handler_imported_already_is_not_imported_twice(model_dir: Path) -> None:
    file = write(model_dir / "net.py", "    class Net: ...\n")
    write(model_dir / "mine.py", "    from net import Net\n" + CLASS)
    load_handler("mine.py", model_dir)

    again = import_file(file)

    assert again.Net is sys.modules["mine"].Net
