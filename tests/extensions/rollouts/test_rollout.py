"""The life of a rollout, its routes, and its decisions."""

import json

import pytest

from tests.kit.said import reason, said_in
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


@said_in("plans.txt")
def test_what_a_client_asks_for(given: str) -> str:
    what, _, text = given.partition(" ")
    if what in ("conditions", "comparing"):
        return reason(lambda: [each.text for each in parse_conditions(text, compare=what == "comparing")], BadRequest)
    return reason(lambda: {"steps": parse_steps, "every": parse_every}[what](text), BadRequest)
