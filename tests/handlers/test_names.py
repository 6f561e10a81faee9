"""Handler strings and the table of built-in handlers."""

import importlib

import pytest

from tsctl.handlers.names import BUILT_IN, OWN_PACKAGE, split_handler


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        pytest.param("mod", ("mod", "handle"), id="a bare name"),
        pytest.param("mod.py", ("mod", "handle"), id="a file"),
        pytest.param("mod:func", ("mod", "func"), id="a name and a function"),
        pytest.param("mod.py:func", ("mod", "func"), id="a file and a function"),
        pytest.param("a/b/mod.py:func", ("mod", "func"), id="directories are dropped"),
        pytest.param("/abs/mod.py", ("mod", "handle"), id="an absolute path too"),
        pytest.param("mod.py:", ("mod", "handle"), id="an empty function is none"),
        pytest.param("copy.python", ("copy.python", "handle"), id="only .py is a suffix"),
        pytest.param("package.module", ("package.module", "handle"), id="a dotted name stays whole"),
    ],
)
def test_split_handler(handler: str, expected: tuple[str, str]) -> None:
    assert split_handler(handler) == expected


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_name_leads_to_a_handler_class(name: str) -> None:
    module, attribute = BUILT_IN[name]

    handler = getattr(importlib.import_module(module), attribute)

    assert callable(handler.handle)
    assert callable(handler.initialize)


def test_no_built_in_handler_has_the_name_of_our_package() -> None:
    assert OWN_PACKAGE not in BUILT_IN
