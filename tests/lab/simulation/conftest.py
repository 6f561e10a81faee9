"""A run logs nothing; other tests do."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    logger = logging.getLogger("tsctl.daemon")
    level = logger.level
    yield
    logger.setLevel(level)
