"""Stages report their time, where the model's configuration asks for it."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.handlers.samples import context_of
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.timer import timed


class Stage:
    def __init__(self, context: Context | None) -> None:
        self.context = context

    @timed
    def inference(self, data: int, *, scale: int = 1) -> int:
        """Scale."""
        return data * scale


def test_a_profiled_stage_reports_its_time_in_ms(capsys: pytest.CaptureFixture[str]) -> None:
    stage = Stage(context_of(Path("/"), config={"handler": {"profile": True}}))

    result = stage.inference(2, scale=3)

    assert result == 6
    line = re.fullmatch(r"\[METRICS\]ts_handler_inference\.Milliseconds:([0-9.e-]+)\|.*\n", capsys.readouterr().out)
    assert line is not None
    assert 0 <= float(line[1]) < 1000


@pytest.mark.parametrize(
    "config",
    [{}, {"handler": {}}, {"handler": {"profile": False}}, {"handler": None}, {"handler": "x"}],
    ids=["nothing", "no profile", "false", "null", "no mapping"],
)
def test_a_stage_is_silent_where_nobody_asked(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    result = Stage(context_of(Path("/"), config=config)).inference(2)

    assert (result, capsys.readouterr().out) == (2, "")
    assert Stage(None).inference(2) == 2
    assert (Stage.inference.__name__, Stage.inference.__doc__) == ("inference", "Scale.")


def test_the_stages_of_the_built_in_handlers_are_timed(capsys: pytest.CaptureFixture[str]) -> None:
    handler = BaseHandler()
    handler.model = lambda numbers: numbers
    context = context_of(Path("/"), config={"handler": {"profile": True}})

    handler.handle([{"data": 1}], context)

    names = re.findall(r"\[METRICS\](\w+)", capsys.readouterr().out)
    assert names == ["ts_handler_preprocess", "ts_handler_inference", "ts_handler_postprocess"]
