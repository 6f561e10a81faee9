"""Fixtures: a daemon for each test that changes it, and one that is shared by those that only ask."""

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.e2e.served import TSCTL, Served

Served.forks = True


# Before pytest selects tests by their markers.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}/"
    mark_real(item for item in items if str(item.path).startswith(here))


def mark_real(items: Iterable[pytest.Item]) -> None:
    """Mark tests of real processes: they are slow, and heavy unless they are thin."""
    for item in items:
        item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("thin") is None:
            item.add_marker(pytest.mark.heavy)


@pytest.fixture(autouse=True)
def daemon_without_tracebacks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test after which a daemon's own log has a traceback, unless the test is marked `leaves_traceback`."""
    yield
    found = [each for served in Served.made for each in served.new_tracebacks()]
    if request.node.get_closest_marker("leaves_traceback") is None:
        assert not found, "\n".join(found)


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


@pytest.fixture
def fragile(idle: Served) -> Served:
    """A daemon with a model that loads as the file `word` says."""
    word = idle.folder / "word"
    word.write_text("go")
    idle.environment |= {"TEST_WORD": str(word), "UPGRADES_MARK": str(idle.folder)}
    idle.forks = False  # the kernel tells the environment with which a process was executed
    idle.start()
    idle.register("fragile")
    return idle


def begin_upgrade(served: Served, *options: str) -> "subprocess.Popen[str]":
    """Ask for an upgrade whose new daemon waits while it loads."""
    (served.folder / "word").unlink()
    asking = subprocess.Popen(
        [TSCTL, "upgrade", *options], env=served.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert asking.stderr is not None
    while "loading" not in (line := asking.stderr.readline()):
        assert line, "the upgrade ended before it loaded"
    return asking
