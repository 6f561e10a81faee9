"""The demo as a whole: its daemon, what becomes of the folder, and what stays on the screen."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tsctl.errors import CliError, Interrupted
from tsctl.showcase import story
from tsctl.showcase.facts import ShowcaseFacts
from tsctl.showcase.stage import Stage

Scene = Callable[[Stage], None]
Play = Callable[[Scene], list[ShowcaseFacts]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """A demo of one scene, without a daemon and a screen."""
    shown: list[ShowcaseFacts] = []

    @contextlib.contextmanager
    def daemon() -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(folder=Path("nowhere"), socket=Path("nowhere"))

    @contextlib.contextmanager
    def drawn(facts: ShowcaseFacts, now: Callable[[], float]) -> Iterator[None]:
        shown.append(facts)
        yield

    def run(scene: Scene) -> list[ShowcaseFacts]:
        monkeypatch.setattr(story, "private_daemon", daemon)
        monkeypatch.setattr(story, "drawn", drawn)
        monkeypatch.setattr(story, "SCENES", (("acting", scene), ("counting", Stage.check)))
        with contextlib.suppress(Interrupted, CliError):
            story.play()
        return shown

    return run


def fail(stage: Stage) -> None:
    raise CliError("the worker is lost")


def interrupt(stage: Stage) -> None:
    raise KeyboardInterrupt


def lose_a_request(stage: Stage) -> None:
    stage.facts.failed = 1


def test_a_demo_that_was_played_ends_with_the_commands(play: Play) -> None:
    (facts,) = play(lambda stage: None)

    assert facts.finished
    assert facts.doing == ""


@pytest.mark.parametrize("scene", [fail, interrupt, lose_a_request])
def test_a_demo_that_was_not_ends_without_them(play: Play, scene: Scene) -> None:
    (facts,) = play(scene)

    assert not facts.finished
    assert facts.doing == ""


class Recorded:
    """A daemon that was to be started; none is."""

    folder, state_dir = Path("/f"), Path("/f/state")
    arguments: Sequence[str]
    environment: Mapping[str, str]
    kept: bool

    def start(self, arguments: Sequence[str], *, environment: Mapping[str, str]) -> "Recorded":
        self.arguments, self.environment = arguments, environment
        return self

    def stop(self, *, keep: bool) -> None:
        self.kept = keep


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    daemon = Recorded()
    monkeypatch.setattr(story, "PrivateDaemon", daemon.start)
    return daemon


def test_the_daemon_has_no_port_nothing_of_the_users_own_and_leaves_nothing(
    started: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSCTL_MANAGEMENT_TOKEN_FILE", "/nowhere")
    with story.private_daemon() as daemon:
        assert daemon.folder == Path("/f")

    assert "--inference-address=none" in started.arguments
    assert "PATH" in started.environment and "TSCTL_MANAGEMENT_TOKEN_FILE" not in started.environment
    assert not started.kept


def test_a_failure_keeps_the_logs_and_names_them(started: Recorded) -> None:
    with pytest.raises(CliError) as raised, story.private_daemon():
        raise CliError("3 of 100 requests failed")

    assert (raised.value.hint, started.kept) == ("the logs are in `/f/state/logs`", True)


def test_a_failure_with_a_remedy_leaves_nothing(started: Recorded) -> None:
    with pytest.raises(CliError, match="no room"), story.private_daemon():
        raise CliError("no room", "make room")

    assert not started.kept
