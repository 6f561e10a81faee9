"""Which versions are loaded and unloaded now: the cases of the decision, without a clock."""

import json
import math
from typing import Any

import pytest

from tests.kit.said import said_in
from tsctl.daemon.extensions.residency.decision import (
    IDLE,
    LOOK_EVERY,
    ROOM,
    YOUNG,
    ResidencePlan,
    VersionFacts,
    decide,
)
from tsctl.daemon.extensions.residency.state import ResidenceState

NOW = 1000.0
LIMIT = {"host": 10}


def loaded(name: str, size: int = 4, **facts: Any) -> VersionFacts[str]:
    """Return a version that was loaded long ago, and is not used since; `facts` say otherwise."""
    usual: dict[str, Any] = {"movable": True, "loaded_at": NOW - 900.0, "used": NOW - 800.0, "memory": {"host": size}}
    return VersionFacts(version=name, state=ResidenceState.LOADED, **usual | facts)


def asked(name: str, size: int = 4, since: float = 1.0, **facts: Any) -> VersionFacts[str]:
    """Return an unloaded version that a request waits for."""
    usual: dict[str, Any] = {"movable": True, "asked": NOW - since, "memory": {"host": size}}
    return VersionFacts(version=name, state=ResidenceState.UNLOADED, **usual | facts)


def other(name: str, state: ResidenceState, size: int = 4, **facts: Any) -> VersionFacts[str]:
    usual: dict[str, Any] = {"movable": True, "memory": {"host": size}}
    return VersionFacts(version=name, state=state, **usual | facts)


def plan(*versions: VersionFacts[str], limits: dict[str, int] | None = None) -> ResidencePlan[str]:
    return decide(versions, LIMIT if limits is None else limits, NOW)


def version(text: str) -> VersionFacts[str]:
    """Read `STATE NAME KEY=VALUE …`; `used` is so many seconds ago, as `since` is."""
    state, name, *facts = text.split()
    values = {key: json.loads(value) for key, _, value in (each.partition("=") for each in facts)}
    if "used" in values:
        values["used"] = NOW - values["used"]
    usual = {"loaded": loaded, "asked": asked}
    return usual[state](name, **values) if state in usual else other(name, ResidenceState[state.upper()], **values)


@said_in("decided.txt")
def test_what_is_loaded_and_unloaded(given: str) -> str:
    found = plan(*map(version, given.split("; ")))
    lines = []
    for done in ("load", "unload", "refuse", "blocked", "cool"):
        each = [one if isinstance(one, str) else "{} ({})".format(*one) for one in getattr(found, done)]
        lines += [f"{done} {', '.join(each)}"] * bool(each)
    return "\n".join(lines)


def test_without_a_limit_any_size_is_loaded() -> None:
    assert plan(asked("a", 900), limits={}).load == ["a"]


@pytest.mark.parametrize(
    ("facts", "unloaded"),
    [
        pytest.param({"used": NOW - 60.0}, [("m", IDLE)], id="idle for its keep-alive"),
        pytest.param({"used": NOW - 59.9}, [], id="idle for less"),
        pytest.param({"used": -math.inf, "loaded_at": NOW - 59.9}, [], id="loaded a moment ago and not asked since"),
        pytest.param({"used": NOW - 60.0, "has_work": True}, [], id="with work"),
        pytest.param({"used": NOW - 60.0, "movable": False}, [], id="pinned"),
        pytest.param({"used": NOW - 60.0, "keep_alive": math.inf}, [], id="kept for ever"),
    ],
)
def test_an_idle_version_is_unloaded(facts: dict[str, Any], unloaded: list[tuple[str, str]]) -> None:
    assert plan(loaded("m", **{"keep_alive": 60.0} | facts)).unload == unloaded


def test_the_next_look_is_when_the_first_will_have_been_idle_for_long_enough() -> None:
    done = plan(loaded("a", 1, used=NOW - 10.0, keep_alive=60.0), loaded("b", 1, used=NOW - 30.0, keep_alive=60.0))

    assert done.wake_at == NOW + 30.0


def test_the_end_of_work_is_looked_for_again() -> None:
    assert plan(loaded("a", 1, has_work=True, keep_alive=0.0)).wake_at == NOW + LOOK_EVERY


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"has_work": True}, id="with work"),
        pytest.param({"loaded_at": NOW - YOUNG + 0.5, "used": NOW}, id="young"),
    ],
)
def test_what_cannot_go_now_is_waited_for(facts: dict[str, Any]) -> None:
    done = plan(loaded("busy", 8, **facts), asked("a", 4))

    assert (done.unload, done.load, done.refuse, done.blocked) == ([], [], [], ["a"])
    assert done.wake_at <= NOW + LOOK_EVERY


def test_each_gpu_has_its_own_limit() -> None:
    limits = {"host": 100, "gpu0": 10, "gpu1": 10}
    first = loaded("first", 1, memory={"host": 1, "gpu0": 8})
    second = loaded("second", 1, memory={"host": 1, "gpu1": 8}, used=NOW - 99.0)

    done = plan(first, second, asked("a", memory={"host": 1, "gpu0": 5}), limits=limits)

    assert done.unload == [("first", ROOM)]


@pytest.mark.parametrize("state", [ResidenceState.HELD, ResidenceState.FAILED, ResidenceState.UNLOADED])
def test_what_nobody_asks_for_is_left_alone(state: ResidenceState) -> None:
    assert plan(other("m", state)) == ResidencePlan()
