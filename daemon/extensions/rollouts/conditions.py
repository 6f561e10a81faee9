"""The conditions that end a rollout, such as `errors>1%`, and the requests that each of them counts.

    errors>1%      over 1 % of the requests that count are errors (core/job.py): not those that a client chose
    p99>1.5x       the 99th percentile of the latency is over 1.5 times that of the versions before
    p99>200ms      or over 200 ms; also `0.2s`
    differs>1%     over 1 % of the answers differ from those of the version before: only with `--compare`

A quantile is over a bound if more than its share of the requests is slower: p99 is over 200 ms if more than 1 % take
longer than that. So each condition is one about a share of bad requests, and all are tested alike (sequential.py).
Latencies are counted in buckets, each at most 21 % wide; one that begins below the bound counts as within it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.extensions.rollouts.sequential import Trials
from tsctl.daemon.metrics.histogram import FINE, Counts

ERRORS, DIFFERS, QUANTILE = "errors", "differs", "quantile"
USUAL = ("errors>1%", "p99>1.5x")
ENOUGH = 20  # answers beyond a quantile of the versions before, so that the quantile is one
_SHARE = re.compile(r"(errors|differs)>([0-9]+(?:\.[0-9]+)?)%")
_LATENCY = re.compile(r"p([0-9]{1,2}(?:\.[0-9]+)?)>([0-9]+(?:\.[0-9]+)?)(x|ms|s)")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition.

    Attributes:
        text: as requested.
        kind: `errors`, `differs` or `quantile`.
        limit: the share of bad requests that is too many.
        factor: of a quantile: times that of the versions before; 0.0 if the bound is absolute.
        seconds: of a quantile: the bound, if it is absolute.
    """

    text: str
    kind: str
    limit: float
    factor: float = 0.0
    seconds: float = 0.0


def parse_condition(text: str) -> Condition:
    """Return a condition.

    Raises:
        BadRequest: the text is none.
    """
    written = text.replace(" ", "")
    share, latency = _SHARE.fullmatch(written), _LATENCY.fullmatch(written)
    if share is not None:
        limit = float(share[2]) / 100
        if 0 < limit < 1:
            return Condition(written, share[1], limit)
    elif latency is not None:
        limit, value = 1 - float(latency[1]) / 100, float(latency[2])
        if 0 < limit < 1 and value > 0:
            if latency[3] == "x":
                return Condition(written, QUANTILE, limit, factor=value)
            return Condition(written, QUANTILE, limit, seconds=value / (1000 if latency[3] == "ms" else 1))
    raise BadRequest(f"`{text}` is no condition; write errors>1%, p99>1.5x, p99>200ms or, with --compare, differs>1%.")


def bound_of(condition: Condition, before: Counts) -> float | None:
    """Return the bound of a latency in seconds; None while the versions before have too few answers.

    Args:
        before: the counts of the versions that answered before.
    """
    if not condition.factor:
        return condition.seconds
    total = sum(before.latencies)
    if round(total * condition.limit, 6) < ENOUGH:
        return None
    left = total * (1 - condition.limit)
    for bound, count in zip(FINE, before.latencies, strict=False):
        left -= count
        if left <= 0:
            return bound * condition.factor
    return FINE[-1] * condition.factor


def trials_of(condition: Condition, counts: Counts, bound: float | None, agreements: Trials) -> Trials | None:
    """Return the requests that a condition counts; None while it cannot count any.

    Args:
        counts: of the new version, since the step began.
        bound: as `bound_of`.
        agreements: compared answers, and those that differ.
    """
    if condition.kind == ERRORS:
        return Trials(counts.judged, counts.errors)
    if condition.kind == DIFFERS:
        return agreements
    return None if bound is None else Trials(sum(counts.latencies), slower(counts.latencies, bound))


def slower(latencies: Sequence[int], bound: float) -> int:
    """Return how many requests took longer than a bound: those in buckets that begin there or later."""
    lows = (0.0, *FINE)
    return sum(count for low, count in zip(lows, latencies, strict=True) if low >= bound)


def less(now: Counts, before: Counts) -> Counts:
    """Return the counts since an earlier moment."""
    latencies = tuple(after - earlier for after, earlier in zip(now.latencies, before.latencies, strict=True))
    return Counts(now.requests - before.requests, now.errors - before.errors, latencies, now.aside - before.aside)


def together(counts: Sequence[Counts]) -> Counts:
    """Return the sum of several versions' counts."""
    if not counts:
        return Counts()
    requests, errors = sum(each.requests for each in counts), sum(each.errors for each in counts)
    latencies = tuple(map(sum, zip(*(each.latencies for each in counts), strict=True)))
    return Counts(requests, errors, latencies, sum(each.aside for each in counts))
