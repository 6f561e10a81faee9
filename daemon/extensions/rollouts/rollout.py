"""A rollout: its plan, and its one-way life.

    COMPARING ──passed──▶ STEPPING ──passed──▶ STEPPING … ──all passed──▶ PROMOTED
        │                    │                                               ▲
        ├───────promote──────┴───────────────────────────────────────────────┘
        │                    │
        └────────back────────┴──▶ ABORTED

COMPARING is the first state of a rollout with `compare`: the new version is a shadow and answers nobody. `back` is
a condition that was shown to hold, a new version that has failed, or a command. The route of ABORTED is the one before
the rollout, the route of PROMOTED is the new version alone. A rollout that has ended is kept to be shown.

The snapshot has the rollout with its step. A daemon that stops in order, or is upgraded, writes what the step has shown
(evidence.py), and the next one goes on from there; one that is killed leaves those that were written last.
"""

import itertools
from dataclasses import dataclass
from enum import Enum

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.extensions.rollouts.conditions import DIFFERS, USUAL, Condition, parse_condition
from tsctl.daemon.extensions.rollouts.evidence import Samples
from tsctl.daemon.models.routing.route import Route

MOST_STEPS = 20
MOST_EVERY = 30 * 86400.0  # seconds
FALSE_ALARM = 0.05  # the probability that a good version is taken back, in the whole rollout
FALSE_PASS = 0.01  # the probability that a bad version passes a step
USUAL_STEPS = (1.0, 10.0, 50.0, 100.0)


class RolloutState(Enum):
    COMPARING = "comparing"  # the new version is a shadow
    STEPPING = "stepping"  # the new version has the share of its step
    PROMOTED = "promoted"  # the new version is the default one
    ABORTED = "aborted"  # the route is the one before


class RolloutEvent(Enum):
    PASSED = "passed"
    ALL_PASSED = "all passed"
    PROMOTE = "promote"
    BACK = "back"


TRANSITIONS: dict[RolloutState, dict[RolloutEvent, RolloutState]] = {
    RolloutState.COMPARING: {
        RolloutEvent.PASSED: RolloutState.STEPPING,
        RolloutEvent.PROMOTE: RolloutState.PROMOTED,
        RolloutEvent.BACK: RolloutState.ABORTED,
    },
    RolloutState.STEPPING: {
        RolloutEvent.PASSED: RolloutState.STEPPING,
        RolloutEvent.ALL_PASSED: RolloutState.PROMOTED,
        RolloutEvent.PROMOTE: RolloutState.PROMOTED,
        RolloutEvent.BACK: RolloutState.ABORTED,
    },
    RolloutState.PROMOTED: {},
    RolloutState.ABORTED: {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """The rollout of one model.

    Attributes:
        version: the new version.
        steps: its shares in percent, rising, the last one 100.
        every: the least time of a step, in seconds.
        conditions: each ends the rollout once it was shown to hold.
        allow_effects: as of a route's shadow.
        before: the weights before the rollout; those of a single version for a default version.
        route: the route before the rollout; None without one.
        state, step: of its life; `step` is an index of `steps`.
        reason: why it has ended.
        samples: the findings of the step when the snapshot was written; None at its beginning.
    """

    version: str
    steps: tuple[float, ...]
    every: float
    conditions: tuple[Condition, ...]
    before: tuple[tuple[str, float], ...]
    route: Route | None = None
    allow_effects: bool = False
    state: RolloutState = RolloutState.STEPPING
    step: int = 0
    reason: str = ""
    samples: Samples | None = None

    @property
    def going_on(self) -> bool:
        return bool(TRANSITIONS[self.state])

    @property
    def share(self) -> float:
        """Return the share of the new version in percent."""
        shares = {RolloutState.COMPARING: 0.0, RolloutState.PROMOTED: 100.0, RolloutState.ABORTED: 0.0}
        return shares.get(self.state, self.steps[self.step])

    @property
    def progress(self) -> str:
        """Return the step in words, such as `step 2 of 4`; the state before and after the steps."""
        if self.state is RolloutState.STEPPING:
            return f"step {self.step + 1} of {len(self.steps)}"
        return str(self.state.value)

    @property
    def versions(self) -> tuple[str, ...]:
        """Return the versions that the rollout needs while it goes on."""
        return (self.version, *(version for version, _ in self.before))

    @property
    def alpha(self) -> float:
        """Return the probability of a false alarm that each test of each step may have."""
        return FALSE_ALARM / ((len(self.steps) + 1) * len(self.conditions))

    @property
    def counted(self) -> tuple[Condition, ...]:
        """Return the conditions that count in the present state: answers are compared while nobody gets them."""
        comparing = self.state is RolloutState.COMPARING
        return tuple(each for each in self.conditions if comparing == (each.kind == DIFFERS))

    def routed(self) -> Route:
        """Return the route of the present step."""
        sticky = "" if self.route is None else self.route.sticky
        if self.state is RolloutState.COMPARING:
            return Route(
                weights=self.before, sticky=sticky, shadow=self.version, allow_effects=self.allow_effects
            )  # fmt: skip
        total, left = sum(weight for _, weight in self.before), 100.0 - self.share
        kept = tuple((version, weight / total * left) for version, weight in self.before) if left else ()
        return Route(weights=(*kept, (self.version, self.share)), sticky=sticky)


def is_possible(rollout: Rollout) -> bool:
    """Return whether a rollout can go on: another program may have written the snapshot."""
    weights = [weight for _, weight in rollout.before]
    return (
        0 <= rollout.step < len(rollout.steps)
        and bool(weights and rollout.conditions)
        and all(weight > 0 for weight in weights)
        and all(0 < each.limit < 1 for each in rollout.conditions)
        and (rollout.samples is None or rollout.samples.possible)
    )


def parse_steps(text: str) -> tuple[float, ...]:
    """Return the steps of a text such as `1,10,50,100`; without a 100 at the end, it is added.

    Raises:
        BadRequest: they are no rising percentages.
    """
    try:
        steps = tuple(float(each.strip().removesuffix("%")) for each in text.split(",") if each.strip())
    except ValueError:
        steps = ()
    if steps and steps[-1] < 100:
        steps = (*steps, 100.0)
    rising = all(low < high for low, high in itertools.pairwise(steps))
    if not steps or not rising or not steps[0] > 0 or steps[-1] > 100 or len(steps) > MOST_STEPS:
        raise BadRequest(f"steps is `{text}`; expected at most {MOST_STEPS} rising percentages, such as 1,10,50,100.")
    return steps


def parse_every(text: str) -> float:
    """Return the seconds of a time such as `2m`, `30s` or `1h`.

    Raises:
        BadRequest: the text is none.
    """
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1.0)
    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= MOST_EVERY:
        raise BadRequest(f"every is `{text}`; expected a time such as 30s, 2m or 1h.")
    return seconds


def parse_conditions(texts: str, *, compare: bool) -> tuple[Condition, ...]:
    """Return conditions, separated by commas; the usual ones for an empty text.

    Args:
        compare: answers are compared, which needs a condition: `differs>1%` unless there is another.

    Raises:
        BadRequest: one is none, or compares answers that are not compared.
    """
    asked = [each for each in texts.split(",") if each.strip()] or list(USUAL)
    found = [parse_condition(each) for each in asked]
    differs = [each for each in found if each.kind == DIFFERS]
    if differs and not compare:
        raise BadRequest(f"`{differs[0].text}` compares answers: add --compare.")
    if compare and not differs:
        found.append(parse_condition("differs>1%"))
    if not any(each.kind != DIFFERS for each in found):
        found += map(parse_condition, USUAL)
    return tuple(dict.fromkeys(found))
