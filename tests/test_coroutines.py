"""A test that is a coroutine function runs on a loop, and its failure is a failure."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from tests.conftest import pytest_pyfunc_call

began: list[asyncio.AbstractEventLoop] = []


@pytest.mark.parametrize("number", [1, 2])
async def test_each_runs_with_its_arguments_on_a_loop_of_its_own(number: int) -> None:
    began.append(asyncio.get_running_loop())

    assert number in (1, 2)
    assert [loop.is_closed() for loop in began] == [True] * (len(began) - 1) + [False]


@pytest.mark.uvloop
async def test_the_daemons_loop_can_be_asked_for() -> None:
    assert isinstance(asyncio.get_running_loop(), uvloop.Loop)


def test_a_failure_after_an_await_is_a_failure() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise KeyError("late")

    item: Any = SimpleNamespace(
        obj=fails, funcargs={}, _fixtureinfo=SimpleNamespace(argnames=()), get_closest_marker=lambda name: None
    )

    with pytest.raises(KeyError, match="late"):
        pytest_pyfunc_call(item)
