"""The decision of a rollout: stay, go on, or go back, from the facts of the present step."""

from collections.abc import Sequence
from dataclasses import dataclass

from tsctl.daemon.extensions.rollouts.conditions import ERRORS, Condition
from tsctl.daemon.extensions.rollouts.rollout import FALSE_PASS, Rollout, RolloutEvent, RolloutState
from tsctl.daemon.extensions.rollouts.sequential import Evidence, Trials, judge, needed


@dataclass(frozen=True, slots=True)
class Finding:
    """The evidence of a step about one condition.

    Attributes:
        trials: None while nothing can be counted.
        needed: requests that are still to come, if none of them is bad; None if that is unknown.
    """

    condition: Condition
    trials: Trials | None
    verdict: Evidence
    needed: int | None


@dataclass(frozen=True, slots=True)
class Decision:
    """An arrow of a rollout's drawing to follow, None to stay; and why."""

    event: RolloutEvent | None
    reason: str


def find(rollout: Rollout, trials: Sequence[tuple[Condition, Trials | None]]) -> list[Finding]:
    """Return the findings of a step, a condition each."""
    found = []
    for condition, counted in trials:
        if counted is None:
            found.append(Finding(condition, None, Evidence.OPEN, None))
            continue
        verdict = judge(counted, condition.limit, rollout.alpha, FALSE_PASS)
        found.append(Finding(condition, counted, verdict, needed(counted, condition.limit, FALSE_PASS)))
    return found


def decide(rollout: Rollout, findings: Sequence[Finding], elapsed: float, failed: str = "") -> Decision:
    """Decide on the next state of a rollout.

    Args:
        elapsed: seconds since the step began.
        failed: why the new version cannot serve; empty while it can.
    """
    if failed:
        return Decision(RolloutEvent.BACK, failed)
    for each in findings:
        if each.verdict is Evidence.BAD:
            return Decision(RolloutEvent.BACK, f"{each.condition.text}: {said(each)}")
    waiting = [each for each in findings if each.verdict is Evidence.OPEN]
    if waiting:
        missing = ", ".join(each.condition.text + _missing(each) for each in waiting)
        return Decision(None, f"not shown yet: {missing}")
    if elapsed < rollout.every:
        return Decision(None, f"{rollout.every - elapsed:.0f} s until the step is over")
    last = rollout.state is RolloutState.STEPPING and rollout.step == len(rollout.steps) - 1
    event = RolloutEvent.ALL_PASSED if last else RolloutEvent.PASSED
    return Decision(event, "; ".join(f"{each.condition.text}: {said(each)}" for each in findings))


def said(finding: Finding) -> str:
    """Return the requests of a finding in words."""
    assert finding.trials is not None  # its verdict would be open
    bad = {ERRORS: "failed", "differs": "differ"}.get(finding.condition.kind, "were slower")
    return f"{finding.trials.bad} of {finding.trials.total} {bad}"


def _missing(finding: Finding) -> str:
    return "" if finding.needed is None else f" ({finding.needed} good answers to come)"
