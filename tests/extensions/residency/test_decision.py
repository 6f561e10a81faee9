"""Which versions are loaded and unloaded now: the cases of the decision, without a clock."""

import math
from typing import Any

import pytest

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


LOADING, UNLOADING = ResidenceState.LOADING, ResidenceState.UNLOADING


@pytest.mark.parametrize(
    ("versions", "done"),
    [
        pytest.param(
            [asked("c", 3, since=1.0), asked("a", 3, since=3.0), asked("b", 3, since=2.0)],
            {"load": ["a", "b"]}, id="two at a time, in the order of their requests",
        ),
        pytest.param(
            [other("x", LOADING, 1), asked("a", 1, since=2.0), asked("b", 1)],
            {"load": ["a"]}, id="a load in progress counts among the two",
        ),
        pytest.param(
            [*(other(name, LOADING, 1, movable=False) for name in "xyz"), asked("a", 1)],
            {"load": ["a"]}, id="the registration of a version that is loaded at once delays no request",
        ),
        pytest.param(
            [loaded("new", used=NOW - 1.0), loaded("old", used=NOW - 99.0), asked("a", 6)],
            {"unload": [("old", ROOM)], "blocked": ["a"]}, id="the least recently used makes room, and no more go",
        ),
        pytest.param(
            [loaded("new"), other("old", UNLOADING), asked("a")],
            {"blocked": ["a"]}, id="while room is being made no other goes for the same request",
        ),
        pytest.param([loaded("new"), asked("a", 6)], {"load": ["a"]}, id="when the room is there it is loaded"),
        pytest.param(
            [loaded("busy", 6, has_work=True), loaded("idle", 2), asked("a", 8)],
            {"blocked": ["a"]}, id="none goes if all that may go now are not enough",
        ),
        pytest.param(
            [asked("a", 11, since=2.0), asked("b")],
            {"refuse": [("a", "host")], "load": ["b"]}, id="one too large is refused, and the next is served",
        ),
        pytest.param(
            [loaded("pinned", movable=False), asked("a", 8, since=2.0), asked("b")],
            {"refuse": [("a", "host")], "load": ["b"]}, id="and one that never fits beside what stays",
        ),
        pytest.param(
            [loaded("busy", 7, has_work=True), asked("large", 6, since=2.0), asked("small", 3)],
            {"load": ["small"], "blocked": ["large"]}, id="a small one goes before a large one if both will fit",
        ),
        pytest.param(
            [loaded("busy", 7, has_work=True), asked("large", 9, since=2.0), asked("small", 3)],
            {"blocked": ["large", "small"]}, id="and waits if it would take the room of the large one",
        ),
        pytest.param(
            [
                loaded("loaded", used=NOW - 99.0),
                other("warm", ResidenceState.UNLOADED, warm=3, used=NOW - 5.0),
                asked("a", 5),
            ],
            {"cool": ["warm"], "blocked": ["a"]}, id="templates of unloaded versions go before loaded versions",
        ),
        pytest.param(
            [loaded("x", has_work=True), asked("a", 5, since=2.0, warm=1), asked("b", 3, warm=3)],
            {"cool": ["b"], "load": ["b"], "blocked": ["a"]}, id="a template goes for the first in line",
        ),
        pytest.param(
            [loaded("idle", 5, keep_alive=60.0), loaded("used", 5, used=NOW - 1.0), asked("a", 5)],
            {"unload": [("idle", IDLE)], "blocked": ["a"]}, id="what leaves as it is idle is room for the next",
        ),
        pytest.param(
            [loaded("x", has_work=True), asked("a", 6, warm=5)],
            {"load": ["a"]}, id="its own template is part of the room of a version",
        ),
        pytest.param(
            [loaded("a", 6, used=NOW - 9.0), loaded("b", 6, used=NOW - 5.0)],
            {"unload": [("a", ROOM)]}, id="more memory than was expected is given back",
        ),
    ],
)  # fmt: skip
def test_what_is_loaded_and_unloaded(versions: list[VersionFacts[str]], done: dict[str, list[Any]]) -> None:
    found = plan(*versions)

    told = {name: getattr(found, name) for name in ("load", "unload", "refuse", "blocked", "cool")}
    assert {name: value for name, value in told.items() if value} == done


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
