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


def test_without_a_limit_all_that_are_asked_for_are_loaded_two_at_a_time_in_the_order_of_their_requests() -> None:
    done = plan(asked("c", 900, since=1.0), asked("a", 900, since=3.0), asked("b", 900, since=2.0), limits={})

    assert (done.load, done.unload, done.refuse) == (["a", "b"], [], [])


def test_a_load_in_progress_counts_among_the_two() -> None:
    done = plan(other("x", ResidenceState.LOADING, 1), asked("a", 1, since=2.0), asked("b", 1))

    assert done.load == ["a"]


def test_the_registration_of_a_version_that_is_loaded_at_once_delays_no_request() -> None:
    starting = [other(name, ResidenceState.LOADING, 1, movable=False) for name in "xyz"]

    assert plan(*starting, asked("a", 1)).load == ["a"]


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


def test_the_least_recently_used_makes_room_and_no_more_go_than_are_needed() -> None:
    done = plan(loaded("new", 4, used=NOW - 1.0), loaded("old", 4, used=NOW - 99.0), asked("a", 4))

    assert (done.unload, done.load, done.blocked) == ([("old", ROOM)], [], ["a"])


def test_while_room_is_being_made_no_other_is_unloaded_for_the_same_request() -> None:
    done = plan(loaded("new", 4), other("old", ResidenceState.UNLOADING, 4), asked("a", 4))

    assert (done.unload, done.load, done.blocked) == ([], [], ["a"])


def test_when_the_room_is_there_the_version_is_loaded() -> None:
    assert plan(loaded("new", 4), asked("a", 6)).load == ["a"]


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


def test_none_goes_if_all_that_may_go_now_are_not_enough() -> None:
    done = plan(loaded("busy", 6, has_work=True), loaded("idle", 2), asked("a", 8))

    assert done.unload == []


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([], id="alone too large"),
        pytest.param([loaded("pinned", 4, movable=False)], id="beside what stays"),
    ],
)
def test_a_version_that_never_fits_is_refused_and_the_next_in_line_is_served(others: list[VersionFacts[str]]) -> None:
    done = plan(*others, asked("a", 11 if not others else 8, since=2.0), asked("b", 4))

    assert (done.refuse, done.load) == ([("a", "host")], ["b"])


def test_a_small_one_goes_before_a_large_one_that_waits_if_both_will_fit() -> None:
    done = plan(loaded("busy", 7, has_work=True), asked("large", 6, since=2.0), asked("small", 3))

    assert (done.load, done.blocked) == (["small"], ["large"])


def test_a_small_one_waits_if_it_would_take_the_room_of_the_large_one() -> None:
    done = plan(loaded("busy", 7, has_work=True), asked("large", 9, since=2.0), asked("small", 3))

    assert (done.load, done.blocked) == ([], ["large", "small"])


def test_templates_of_unloaded_versions_go_before_any_loaded_version() -> None:
    warm = other("warm", ResidenceState.UNLOADED, 4, warm=3, used=NOW - 5.0)
    done = plan(loaded("loaded", 4, used=NOW - 99.0), warm, asked("a", 5))

    assert (done.cool, done.unload) == (["warm"], [])


def test_a_template_goes_for_the_first_in_line_and_its_own_stays() -> None:
    done = plan(loaded("x", 4, has_work=True), asked("a", 5, since=2.0, warm=1), asked("b", 3, warm=3))

    assert done.cool == ["b"]


def test_what_leaves_because_it_is_idle_is_room_for_the_next() -> None:
    done = plan(loaded("idle", 5, keep_alive=60.0), loaded("used", 5, used=NOW - 1.0), asked("a", 5))

    assert done.unload == [("idle", IDLE)]


def test_the_template_of_the_version_that_is_asked_for_is_part_of_its_room() -> None:
    assert plan(loaded("x", 4, has_work=True), asked("a", 6, warm=5)).load == ["a"]


def test_more_memory_than_was_expected_is_given_back() -> None:
    done = plan(loaded("a", 6, used=NOW - 9.0), loaded("b", 6, used=NOW - 5.0))

    assert done.unload == [("a", ROOM)]


def test_each_gpu_has_its_own_limit() -> None:
    limits = {"host": 100, "gpu0": 10, "gpu1": 10}
    first = loaded("first", 1, memory={"host": 1, "gpu0": 8})
    second = loaded("second", 1, memory={"host": 1, "gpu1": 8}, used=NOW - 99.0)

    done = plan(first, second, asked("a", memory={"host": 1, "gpu0": 5}), limits=limits)

    assert done.unload == [("first", ROOM)]


@pytest.mark.parametrize("state", [ResidenceState.HELD, ResidenceState.FAILED, ResidenceState.UNLOADED])
def test_what_nobody_asks_for_is_left_alone(state: ResidenceState) -> None:
    assert plan(other("m", state)) == ResidencePlan()
