"""The sentence on a version, from the facts of its last minute.

what is so                                           the sentence
---------------------------------------------------  -----------------------------------------------------
workers end one after the other                      where their last words are
more comes than the workers can do, and some load    how many are ready
…, and further workers have room                     `tsctl scale` with the number that keeps up
…, and have none                                     why not, and `tsctl tune`
more than 1 % of the requests fail                   how many, and where the reasons are
the workers keep up                                  what comes, and what they can do
nothing came, or no batch was measured               none
"""

import math
from collections.abc import Callable, Mapping
from shlex import quote
from typing import Any, NamedTuple

from tsctl.daemon.declarations import DETAILED, VersionView
from tsctl.daemon.extension import Service
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.reporting.trouble import MOST_ERRORS
from tsctl.daemon.models.version import ModelVersion

BUSY = 0.9  # of what the workers can do: above that, requests wait for one another


class VerdictFacts(NamedTuple):
    """A version in the last minute.

    Attributes:
        model: as a command names it: MODEL, or MODEL/VERSION.
        crashing: the last workers ended by themselves, one after the other.
        requests, errors: answered, and those that count against the version.
        rate: requests a second that came, answered or not.
        capacity: requests a second that one worker answers in batches as they are now; None while that is unknown.
        ready, wanted: workers.
        shortage: returns why so many workers have no room; None if they have.
    """

    model: str
    crashing: bool = False
    requests: int = 0
    errors: int = 0
    rate: float = 0.0
    capacity: float | None = None
    ready: int = 1
    wanted: int = 1
    shortage: Callable[[int], str | None] = lambda workers: None


def verdict(facts: VerdictFacts) -> str:
    """Return the sentence; empty where too little is known for one."""
    if facts.crashing:
        return f"its workers end one after the other: `tsctl events {quote(facts.model)}` says why"
    if facts.capacity and facts.rate > BUSY * facts.capacity * facts.ready and facts.wanted:
        return _overload(facts, facts.capacity)
    if facts.errors > MOST_ERRORS * facts.requests:
        many = f"{facts.errors} of {max(facts.errors, facts.requests)} requests"
        return f"{many} failed: the reasons are below, and `tsctl logs {quote(facts.model)}` has the output"
    if facts.capacity and facts.rate and facts.ready:
        return f"{_come(facts)}, {_can(facts.ready, facts.capacity)}"
    return ""


def _overload(facts: VerdictFacts, capacity: float) -> str:
    model = quote(facts.model)
    if facts.ready < facts.wanted:
        some = f"{facts.ready} of {facts.wanted} workers {'is' if facts.ready == 1 else 'are'} ready"
        one = f"one worker can do {_number(capacity)}"
        return f"{_come(facts)}, {one}, and only {some}: `tsctl events {model}` says why"
    needed = math.ceil(facts.rate / (BUSY * capacity))
    said = f"{_come(facts)}, {_can(facts.ready, capacity)}"
    shortage = facts.shortage(needed)
    if shortage is None:
        return f"{said}: `tsctl scale {model} {needed}`"
    return f"{said}, and {shortage}: `tsctl tune {model}` looks for a faster setting"


def _come(facts: VerdictFacts) -> str:
    number = _number(facts.rate)
    return f"{number} request{'' if number == '1' else 's'}/s come{'s' if number == '1' else ''}"


def _can(workers: int, capacity: float) -> str:
    return f"{'one worker' if workers == 1 else f'{workers} workers'} can do {_number(workers * capacity)}"


def _number(value: float) -> str:
    """Return a rate with two significant digits, and no exponent."""
    return f"{value:.0f}" if value >= 9.95 else f"{value:.2g}"


class VerdictService(Service):
    """The verdicts of all versions as a service of the daemon."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def fields(self, model: ModelVersion, view: VersionView) -> Mapping[str, Any]:
        """Return the sentence; None where there is none."""
        return {"verdict": verdict(self._facts(model)) or None} if view in DETAILED else {}

    def _facts(self, model: ModelVersion) -> VerdictFacts:
        pool, recent = model.pool, model.metrics.recent(model.clock.now())
        # What waits or runs has come, too: under overload, less is answered than comes.
        came = recent.requests + model.waiting + model.running
        return VerdictFacts(
            model.name if self._registry.is_default(model) else f"{model.name}/{model.version}",
            model.crashing,
            recent.requests,
            recent.errors,
            came / recent.seconds if recent.seconds else 0.0,
            _capacity(model),
            pool.ready,
            pool.wanted,
            pool.shortage_with,
        )


def _capacity(model: ModelVersion) -> float | None:
    """Return the requests a second of one worker.

    None before the first batch, and where a worker runs row by row: a batch's time says nothing of its rate then.
    """
    times, best = model.traffic.times, model.traffic.best
    if model.by_rows or not times.known:
        return None
    costs = {} if best is None else best.costs
    if best is not None and costs.get(best.size):  # measured while all workers were busy
        return 1.0 / costs[best.size]
    # While all batches have one size, only the time of that one is known.
    size = model.settings.batch_size if times.spread else max(model.dispatcher.sizes, default=1)
    seconds = times.of(size)
    return size / seconds if seconds > 0.0 else None
