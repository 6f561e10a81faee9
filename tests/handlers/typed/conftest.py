"""Fixtures: what a test has opened is closed."""

from collections.abc import Iterator

import pytest

from tests.handlers.typed.calls import close_all


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_all()
