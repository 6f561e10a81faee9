"""Handler strings and the table of built-in handlers."""

import importlib

import pytest

from tests.kit.said import said_in
from tsctl.handlers.names import BUILT_IN, OWN_PACKAGE, split_handler


@said_in("names.txt")
def test_split_handler(given: str) -> str:
    return " ".join(split_handler(given))


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_name_leads_to_a_handler_class(name: str) -> None:
    module, attribute = BUILT_IN[name]

    handler = getattr(importlib.import_module(module), attribute)

    assert callable(handler.handle)
    assert callable(handler.initialize)


def test_no_built_in_handler_has_the_name_of_our_package() -> None:
    assert OWN_PACKAGE not in BUILT_IN
