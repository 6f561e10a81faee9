"""The sequential test of a rollout: is a share of bad requests within its limit, or not?

Each request is bad or good. Two hypotheses are compared by the likelihood ratio of the requests so far, as in Wald's
sequential probability ratio test (Wald: Sequential Tests of Statistical Hypotheses, 1945):

    good    at most half of the limit is bad
    bad     the whole limit is bad

               n requests, k of them bad:   ratio = (p₁/p₀)^k · ((1-p₁)/(1-p₀))^(n-k),   p₁ = limit, p₀ = limit / 2

    ratio ≥ 1/α    it is bad: the probability of this ever happening to a good version is at most α
    ratio ≤ β      it is good: the probability of this ever happening to a bad version is at most β

Both bounds hold however often one looks, because the ratio is a nonnegative supermartingale that begins at 1 under one
hypothesis, and its inverse is one under the other (Ville's inequality); so the test goes on after either has happened.
A version between the two hypotheses takes longest, and may be judged either way.
"""

import math
from enum import Enum
from typing import NamedTuple


class Trials(NamedTuple):
    """Requests so far, and how many of them were bad."""

    total: int
    bad: int


class Evidence(Enum):
    """The evidence of the requests so far."""

    OPEN = "open"
    GOOD = "good"
    BAD = "bad"


def log_ratio(trials: Trials, limit: float) -> float:
    """Return the logarithm of the likelihood ratio; `limit` is a share between 0 and 1."""
    likely = limit / 2
    good = trials.total - trials.bad
    return trials.bad * math.log(limit / likely) + good * (math.log1p(-limit) - math.log1p(-likely))


def judge(trials: Trials, limit: float, alpha: float, beta: float) -> Evidence:
    """Return the verdict.

    Args:
        limit: the share of bad requests that is too many, between 0 and 1.
        alpha: the probability of BAD for a good version, ever.
        beta: the probability of GOOD for a bad version, ever.
    """
    ratio = log_ratio(trials, limit)
    if ratio >= -math.log(alpha):
        return Evidence.BAD
    return Evidence.GOOD if ratio <= math.log(beta) else Evidence.OPEN


def needed(trials: Trials, limit: float, beta: float) -> int:
    """Return how many more requests show that the version is good, if none of them is bad; 0 if enough have."""
    a_request = math.log1p(-limit) - math.log1p(-limit / 2)
    return max(0, math.ceil((math.log(beta) - log_ratio(trials, limit)) / a_request - 1e-9))
