"""A run logs nothing; other tests do."""

import logging
from collections.abc import Iterator

import pytest

from tests.lab.simulation.run import prepare


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logger = logging.getLogger("tsctl.daemon")
    level = logger.level
    prepare()
    yield
    logger.setLevel(level)
