"""Texts without end, and what a model is loaded with; answers are in `conversations/results.txt`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.handlers.samples import context_of, row
from tsctl.handlers import wire
from tsctl.handlers.requests.excerpt import LONGEST_MESSAGE, LONGEST_TRACEBACK
from tsctl.handlers.runtime.runtime import Runtime, read_model_config
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import InvalidResult, NotSerialisable, PredictionException, UnreadablePayload
from tsctl.handlers.sdk.loader import EntryPoint


def run(handle: Callable[[Any, Context], Any], count: int = 1) -> list[wire.Answer]:
    """Run a batch of so many empty rows through a handler that is a function."""
    return Runtime(EntryPoint(None, handle), context_of(Path("/"))).run([row(b"")] * count)


def raising(error: BaseException) -> Callable[[Any, Context], Any]:
    def handle(data: Any, context: Context) -> Any:
        raise error

    return handle


LONG = "x" * 10_000_000


@pytest.mark.parametrize(
    "error",
    [
        ValueError(LONG),
        MemoryError(LONG),
        PredictionException(LONG, 418),
        UnreadablePayload(LONG),
        InvalidResult(LONG),
        NotSerialisable(LONG),
        ExceptionGroup("many", [ValueError(LONG)] * 3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_text_of_an_exception_is_cut(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    for answer in run(raising(error)):
        text = answer.body.decode()
        assert len(text) < 2 * LONGEST_MESSAGE
        if not isinstance(error, ExceptionGroup):
            assert "x… (9990000 characters more)" in text
        if not isinstance(error, PredictionException):
            assert text.endswith("(Request r0)")

    assert len(capsys.readouterr().err) < 2 * LONGEST_TRACEBACK


def test_the_text_of_an_item_that_is_an_exception_is_cut() -> None:
    answers = run(lambda data, context: [ValueError(LONG), "well", "well"], 3)

    assert [len(answer.body) < 2 * LONGEST_MESSAGE for answer in answers] == [True] * 3


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("handler:\n  top: 1\n", {"handler": {"top": 1}}, id="a mapping"),
        pytest.param("", {}, id="an empty file"),
        pytest.param("- a\n", {}, id="a list"),
        pytest.param(None, {}, id="no file named"),
    ],
)
def test_the_handler_sees_the_archives_yaml(tmp_path: Path, content: str | None, expected: dict[str, Any]) -> None:
    model: dict[str, Any] = {}
    if content is not None:
        (tmp_path / "model-config.yaml").write_text(content)
        model = {"configFile": "model-config.yaml"}

    config = read_model_config(wire.Load("net", "1.0", str(tmp_path), "h", {"model": model}, 1, 1))

    assert config == expected


@pytest.mark.parametrize(("text", "limited"), [(None, True), ("true", True), ("false", False)])
def test_whether_images_are_limited_is_the_operators_word(
    text: str | None, limited: bool, model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    monkeypatch.setattr("tsctl.handlers.runtime.runtime.load_handler", lambda handler, directory, typed: Entry(seen))
    if text is not None:
        monkeypatch.setenv("TS_LIMIT_MAX_IMAGE_PIXELS", text)

    Runtime.load(wire.Load("m", "1.0", str(model_dir), "h", {}, 1, 1))

    assert seen == [limited]


class Entry(EntryPoint):
    """Notes what the context says of images."""

    def __init__(self, seen: list[bool]) -> None:
        super().__init__(None, lambda data, context: data)
        self._seen = seen

    def initialize(self, context: Context) -> None:
        self._seen.append(context.system_properties["limit_max_image_pixels"])
