"""A rollout of a whole daemon on a fake clock: it goes on, goes back, is ended by commands, and survives a restart."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.api.house import House
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.job import Reply
from tsctl.daemon.extension import Kernel
from tsctl.daemon.extensions.rollouts.rollout import Rollout
from tsctl.daemon.extensions.rollouts.rollouts import Rollouts
from tsctl.daemon.extensions.rollouts.service import RolloutsService

START = "/models/m/rollout?version=2.0&steps=50&every=10s&abort_if=errors%3E20%25"


async def serving(tmp_path: Path) -> House:
    house = House(tmp_path)
    for version in ("1.0", "2.0"):
        await house.serve("m", version)
    house.registry.routes.random.seed(1)
    return house


async def ask(house: House, count: int) -> None:
    for _ in range(count):
        await house.ask("POST", "/predictions/m", b"x")


async def pass_time(house: House, seconds: int) -> None:
    """Let seconds pass, and each decision be carried out."""
    for _ in range(seconds):
        house.clock.advance(1.0)
        for task in list(house.service(RolloutsService)._tasks):
            await task


def kinds(house: House) -> list[str]:
    return [event.kind for event in house.registrar.events.after(0) if event.kind.startswith("rollout")]


def hostile(house: House, times: int) -> None:
    """Let a client end requests by its own doing, again and again: by deadlines, by leaving, and by bad input."""
    house.engine.answer = lambda job: Reply(422, b"no image") if job.params[0].value == b"bad" else Reply(200, b"x")
    at_once, house.engine.batch_time = house.engine.batch_time, lambda size: 0.01
    for _ in range(times):
        house.send("POST", "/predictions/m", b"late", "x-request-deadline-ms: 1")
        house.send("POST", "/predictions/m", b"x", "x-request-deadline-ms: soon")
        house.send("POST", "/predictions/m", b"gone").leave()
        house.send("POST", "/predictions/m", b"bad")
        house.clock.advance(0.1)
    house.engine.batch_time = at_once


async def test_no_client_takes_a_good_version_back(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    await house.tell("POST", START)

    hostile(house, 100)
    await pass_time(house, 2)

    assert "rollout-aborted" not in kinds(house)
    await ask(house, 150)
    await pass_time(house, 12)
    assert kinds(house) == ["rollout-started", "rollout-advanced", "rollout-promoted"], "good answers count as ever"


def test_a_decision_that_raises_is_not_the_last_one() -> None:
    clock, calls = FakeClock(), 0

    def expects(name: str) -> bool:
        nonlocal calls
        calls += 1
        raise RuntimeError(name)

    parts = SimpleNamespace(
        registry=SimpleNamespace(expects=expects), clock=clock,
        registrar=SimpleNamespace(routes=None, ledger=None, gate=None), observation=SimpleNamespace(events=None),
    )  # fmt: skip
    rollouts = Rollouts(cast(Kernel, parts))
    rollouts.by_model["m"] = cast(Rollout, SimpleNamespace(going_on=True))
    rollouts.begin()

    for _ in range(2):
        with pytest.raises(RuntimeError):
            clock.advance(1.0)

    assert calls == 2
