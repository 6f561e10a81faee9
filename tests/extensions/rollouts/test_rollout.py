"""The life of a rollout, its routes, and its decisions."""

import json
import re

import pytest

from tests.kit.said import said_in
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.extensions.rollouts.decision import decide, find
from tsctl.daemon.extensions.rollouts.rollout import (
    FALSE_ALARM,
    Rollout,
    RolloutEvent,
    RolloutState,
    parse_conditions,
    parse_every,
    parse_steps,
)
from tsctl.daemon.extensions.rollouts.sequential import Trials
from tsctl.daemon.models.routing.route import Route


def rollout(state: RolloutState = RolloutState.STEPPING, step: int = 0, **changes: object) -> Rollout:
    conditions = parse_conditions("errors>10%", compare=False)
    values = {
        "version": "2", "steps": (10.0, 100.0), "every": 60.0, "conditions": conditions, "before": (("1", 100.0),),
        "state": state, "step": step,
    }  # fmt: skip
    return Rollout(**values | changes)  # type: ignore[arg-type]


def test_a_step_takes_its_share_from_the_versions_before() -> None:
    three = rollout(before=(("1", 3.0), ("0", 1.0)), route=Route(weights=(("1", 3.0), ("0", 1.0)), sticky="ip"))

    assert three.routed() == Route(weights=(("1", 67.5), ("0", 22.5), ("2", 10.0)), sticky="ip")
    assert rollout(step=1).routed() == Route(weights=(("2", 100.0),))
    assert rollout(RolloutState.COMPARING).routed() == Route(weights=(("1", 100.0),), shadow="2")


@said_in("decided.txt")
def test_decide(given: str) -> str:
    asked, told = rollout(), json.loads(given)
    trials = told["trials"] and Trials(*told["trials"])
    decision = decide(asked, find(asked, [(asked.conditions[0], trials)]), told["elapsed"], told["failed"])
    return f"{decision.event.name if decision.event else 'nothing yet'}: {decision.reason}"


def test_the_last_step_ends_the_rollout() -> None:
    last = rollout(step=1)

    assert decide(last, find(last, [(last.conditions[0], Trials(500, 0))]), 60.0).event is RolloutEvent.ALL_PASSED


def test_the_tests_of_all_steps_and_of_the_comparison_share_the_chance_of_a_false_alarm() -> None:
    asked = rollout(conditions=parse_conditions("errors>10%,p99>2x", compare=False))

    assert asked.alpha * (len(asked.steps) + 1) * 2 == pytest.approx(FALSE_ALARM)


@pytest.mark.parametrize(
    ("text", "steps"),
    [("1,10,50,100", (1, 10, 50, 100)), ("5%, 20%", (5, 20, 100)), ("100", (100,)), ("0.5", (0.5, 100))],
)
def test_steps_are_rising_percentages_up_to_100(text: str, steps: tuple[float, ...]) -> None:
    assert parse_steps(text) == steps


@pytest.mark.parametrize("text", ["", "0,100", "10,10", "50,10", "10,200", "101", "nan", "a", "-1"])
def test_other_steps_are_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="steps is"):
        parse_steps(text)


@pytest.mark.parametrize(("text", "seconds"), [("2m", 120.0), ("30s", 30.0), ("1.5h", 5400.0), ("7", 7.0)])
def test_a_time_has_a_unit(text: str, seconds: float) -> None:
    assert parse_every(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1s", "m", "9999h", "2d"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="every is"):
        parse_every(text)


def test_usual_conditions_and_those_of_a_comparison() -> None:
    texts = [
        [each.text for each in parse_conditions(text, compare=compare)]
        for text, compare in (("", False), ("", True), ("p50>2x", True), ("differs>5%", True), ("p50>2x,p50>2x", False))
    ]

    assert texts == [
        ["errors>1%", "p99>1.5x"],
        ["errors>1%", "p99>1.5x", "differs>1%"],
        ["p50>2x", "differs>1%"],
        ["differs>5%", "errors>1%", "p99>1.5x"],
        ["p50>2x"],
    ]
    with pytest.raises(BadRequest, match=re.escape("`differs>1%` compares answers: add --compare.")):
        parse_conditions("differs>1%", compare=False)
