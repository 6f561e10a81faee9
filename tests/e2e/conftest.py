"""Fixtures: a daemon for each test that changes it, and one that is shared by those that only ask."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.container import Contain, Container, needs_container
from tests.e2e.served import Served

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
    with Served(tmp_path) as served:
        yield served


@pytest.fixture
def served(idle: Served) -> Served:
    """A running daemon without models."""
    idle.start()
    return idle


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A running daemon with the model `echo`, for tests that only ask."""
    with Served(tmp_path_factory.mktemp("shared")) as served:
        served.start("--max-request-size", "1MiB")
        served.register("echo", "--batch-size", "4", "--max-delay", "0")
        yield served


@pytest.fixture
def contain(tmp_path: Path) -> Iterator[Contain]:
    """Run the entry point in a container that ends with the test: words, mounts, variables."""
    needs_container()
    with ExitStack() as started:

        def run(words: Sequence[str], mounts: Mapping[Path, Path], **environment: str) -> Container:
            variables = {"TSCTL_TEMPLATE": "false"} | environment
            container = Container.of_this_machine(tmp_path, words, variables, mounts)
            started.callback(container.kill)
            return container

        yield run


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
