"""Versions that come and go in `tsctl top`."""

import pytest

from tests.extensions.live.tsctl.documents import live, model
from tests.extensions.live.tsctl.test_screens import drawn, past_of, texts
from tests.extensions.residency.tsctl.test_shown import ABSENT
from tsctl.extensions.live.columns import ScreenSize
from tsctl.extensions.live.detail import detail
from tsctl.extensions.live.past_rates import Past
from tsctl.extensions.live.table import screen
from tsctl.extensions.live.view import View


@pytest.mark.parametrize(
    ("columns", "state"), [(120, "unloaded: idle"), (76, "unloaded")], ids=["with room", "without room"]
)
def test_an_unloaded_model_says_why_if_there_is_room(columns: int, state: str) -> None:
    gone = model("m", state="unloaded", ready=0, wanted=0, workers=[], residence=ABSENT)

    lines = texts(screen(past_of((gone, gone)), View(), ScreenSize(columns, 24)))

    assert next(line for line in lines if line.startswith("> m")).endswith(f"  {state}")


def test_a_model_that_comes_and_goes_shows_since_when_why_and_what_it_takes() -> None:
    gone = model("m", state="unloaded", ready=0, wanted=0, workers=[], residence=ABSENT)

    lines = texts(detail(past_of((gone, gone)), ("m", "1.0"), [], [], ScreenSize(80, 24)))

    at = next(index for index, line in enumerate(lines) if line.startswith("unloaded for"))
    assert lines[at : at + 2] == [
        "unloaded for 1 min 1 s: idle for 1m, last used 2 min 1 s ago",
        "takes 72.0 MiB on host when loaded",
    ]


def test_the_budget_of_memory_stands_above_the_table() -> None:
    memory = {"budget": {"host": 2**30, "gpu0": 2**31}, "used": {"host": 200 * 2**20, "gpu0": 0}}
    past = Past()
    past.take_answer(live(2000.0, model()) | {"memory": memory})

    head = " · ".join(drawn(screen(past, View(), ScreenSize(120, 16)))[1:3])

    assert "200M of 1.0G budget · 0B of 2.0G budget gpu0" in head
