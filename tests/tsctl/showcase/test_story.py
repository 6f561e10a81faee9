"""The end of the demo: what stays on the screen."""

import contextlib
from collections.abc import Callable, Iterator
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
