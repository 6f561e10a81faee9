"""`/models/MODEL/rollout`: a new version that takes over step by step.

GET             the last rollout of the model, and the evidence of its requests
POST            start one: `version`, `steps`, `every`, `abort_if`, `compare`, `allow_effects`
POST …/promote  end it: the new version answers all requests
POST …/abort    end it: the versions before answer all requests again
"""

from collections.abc import Mapping
from typing import Any

from tsctl.daemon.api.management.commands import Parameters, finished
from tsctl.daemon.api.openapi import BOOLEAN, STATUS, STRING, Operation, Schema, members
from tsctl.daemon.core.errors import BadRequest, MethodNotAllowed, ResourceNotFound
from tsctl.daemon.extensions.rollouts.decision import Finding
from tsctl.daemon.extensions.rollouts.rollout import (
    USUAL_STEPS,
    Rollout,
    RolloutEvent,
    RolloutState,
    parse_conditions,
    parse_every,
    parse_steps,
)
from tsctl.daemon.extensions.rollouts.rollouts import Rollouts
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import json_response, status_response
from tsctl.daemon.model_settings.kinds import Boolean
from tsctl.daemon.models.registry import Registry

ROLLOUT = "rollout"
_COMMANDS = {"promote": RolloutEvent.PROMOTE, "abort": RolloutEvent.BACK}
_PATH = f"/models/{{model_name}}/{ROLLOUT}"
_STARTING: dict[str, Schema] = {
    "version": STRING, "steps": STRING, "every": STRING, "abort_if": STRING, "compare": BOOLEAN,
    "allow_effects": BOOLEAN,
}  # fmt: skip
_SHOWN = members({"modelName": STRING, "rollout": {"type": "object", "nullable": True}})


def rollout_operations() -> Mapping[str, Mapping[str, Operation]]:
    """Return the description of the route."""
    ends = {f"{_PATH}/{word}": {"post": finished(f"{word}Rollout", f"{_PATH}/{word}", STATUS)} for word in _COMMANDS}
    return {
        _PATH: {
            "get": finished("showRollout", _PATH, _SHOWN),
            "post": finished("startRollout", _PATH, STATUS, _STARTING, "version"),
        }
    } | ends


async def answer_rollout(registry: Registry, rollouts: Rollouts, exchange: Exchange, path: list[str]) -> None:
    """Answer a request for the rollout of a model.

    Args:
        path: MODEL, `rollout`, and a command or nothing.

    Raises:
        DaemonError: the command is refused, as `Rollouts`.
        MethodNotAllowed: the method is none of those above.
        ResourceNotFound: the command is unknown.
    """
    name, method = path[0], exchange.request.method
    if len(path) == 3:
        if path[2] not in _COMMANDS:
            raise ResourceNotFound
        if method != "POST":
            raise MethodNotAllowed
        ended = await rollouts.end(name, _COMMANDS[path[2]], f"by the command {path[2]}")
        who = f"version {ended.version} answers all requests"
        if ended.state is RolloutState.ABORTED:
            who = f"version {ended.version} answers none; the others answer as before"
        exchange.respond(status_response(f'Rollout of model "{name}" {ended.state.value}: {who}'))
    elif method == "POST":
        rollout = _asked(Parameters(exchange.request), rollouts, name)
        await rollouts.start(name, rollout)
        steps = ", ".join(f"{step:g} %" for step in rollout.steps)
        exchange.respond(status_response(f'Rollout of model "{name}" version {rollout.version} begins: {steps}'))
    elif method in ("GET", "HEAD"):
        registry.find(name)
        exchange.respond(json_response(rollout_document(rollouts, name)))
    else:
        raise MethodNotAllowed


def _asked(given: Parameters, rollouts: Rollouts, name: str) -> Rollout:
    version = given.text("version")
    if version is None:
        raise BadRequest("version is missing: the version that is to take over.")
    compare = bool(given.read("compare", Boolean()))
    before, route = rollouts.before(name, version)
    return Rollout(
        version=version,
        steps=parse_steps(given.text("steps") or ",".join(map(str, USUAL_STEPS))),
        every=parse_every(given.text("every") or "2m"),
        conditions=parse_conditions(given.text("abort_if") or "", compare=compare),
        before=before,
        route=route,
        allow_effects=bool(given.read("allow_effects", Boolean())),
        state=RolloutState.COMPARING if compare else RolloutState.STEPPING,
    )


def rollout_document(rollouts: Rollouts, name: str) -> dict[str, Any]:
    """Return the last rollout of a model, null without one, and the evidence of its step's requests."""
    rollout = rollouts.by_model.get(name)
    if rollout is None:
        return {"modelName": name, "rollout": None}
    findings = rollouts.findings(name, rollout)
    waits = rollouts.decision(name, rollout).reason if rollout.going_on else None
    return {
        "modelName": name,
        "rollout": {
            "version": rollout.version,
            "state": rollout.state.value,
            "share": rollout.share,
            "steps": list(rollout.steps),
            "step": rollout.step,
            "every": rollout.every,
            "abortIf": [each.text for each in rollout.conditions],
            "reason": rollout.reason or None,
            "waitsFor": waits,
            "findings": [_finding(each) for each in findings],
        },
    }


def _finding(finding: Finding) -> dict[str, Any]:
    trials = finding.trials
    return {
        "condition": finding.condition.text,
        "verdict": finding.verdict.value,
        "requests": None if trials is None else trials.total,
        "bad": None if trials is None else trials.bad,
        "needed": finding.needed,
    }
