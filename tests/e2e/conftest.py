"""Fixtures: a daemon for each test that changes it, and one that is shared by those that only ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.served import Served


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Served]:
    """A place for a daemon; none has been started."""
    served = Served(tmp_path)
    yield served
    served.stop()


@pytest.fixture
def served(idle: Served) -> Served:
    """A running daemon without models."""
    idle.start()
    return idle


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A running daemon with the model `echo`, for tests that only ask."""
    served = Served(tmp_path_factory.mktemp("shared"))
    served.start("--max-request-size", "1MiB")
    try:
        served.register("echo", "--batch-size", "4", "--max-delay", "0")
        yield served
    finally:
        served.stop()
