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
from collections.abc import Callable
from shlex import quote
from typing import NamedTuple

from tsctl.daemon.models.reporting.trouble import MOST_ERRORS

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
        return f"its workers end one after the other: `tsctl logs {quote(facts.model)}` has their last words"
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
        return f"{_come(facts)}, one worker can do {_number(capacity)}, and only {some}: `tsctl logs {model}` says why"
    needed = max(facts.wanted + 1, math.ceil(facts.rate / (BUSY * capacity)))
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
