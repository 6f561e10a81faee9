"""The story of a run in readable lines, and the failure that ended it."""

import re
from collections import deque
from dataclasses import dataclass, field

from tests.lab.simulation.plan import Plan

KEPT = 120  # last lines shown
_MADE = re.compile(r"ts-seq-[0-9a-f-]{36}")  # an id that the daemon makes; each run has others


@dataclass(frozen=True, slots=True)
class Failure:
    """A broken invariant, with the second of the run and the values."""

    seed: int
    invariant: str
    at: float
    values: dict[str, str]

    def __str__(self) -> str:
        values = [f"    {name}: {text}" for name, text in self.values.items()]
        return "\n".join([f"seed {self.seed} at {self.at:.4f} s: it does not hold that {self.invariant}", *values])


@dataclass
class Story:
    """The last lines of a run."""

    lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT))
    told: int = 0

    def note(self, at: float, text: str) -> None:
        self.told += 1
        self.lines.append(f"{at:10.4f}  {_MADE.sub('ts-seq-…', text)}")


def tell(plan: Plan, story: Story, failure: Failure | None) -> str:
    """Return a run's report: the plan, the last events, the failure, and the command to repeat the run."""
    drawn = ", ".join(f"{name} {chance:g}" for name, chance in plan.faults.items()) or "none"
    traffic = plan.traffic
    lines = [
        f"seed {plan.seed}: {len(plan.models)} models, {sum(size for _, size in traffic.bursts)} requests and "
        f"{len(plan.events)} events in {plan.span:g} s; {'then it heals' if plan.heals else 'then it is stopped'}",
        f"    a batch of n takes {plan.service[0]:g} + {plan.service[1]:g} n s, a load {plan.load_time:g} s; "
        f"grace {plan.grace:g} s{f', hurried after {plan.hurry:g} s' if plan.hurry else ''}",
        f"    faults of workers: {drawn}",
        f"    of requests: low {traffic.low:g}, solo {traffic.solo:g}, with a deadline {traffic.timed:g}, patient "
        f"{traffic.patient:g}, poison {traffic.poison:g}",
        "",
    ]
    if story.told > len(story.lines):
        lines.append(f"            … {story.told - len(story.lines)} lines before")
    lines += story.lines
    if failure is not None:
        lines += ["", str(failure), f"again: python -m tests.lab.simulation --seed {plan.seed} --story"]
    return "\n".join(lines)
