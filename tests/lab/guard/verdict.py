"""From the ratios of the pairs to the verdict."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

LIMIT = 1.05  # times the baseline's processor time for a request
PAIRS = 9  # an odd number: the median is then one of them, and four of nine may be anything
LOOKS = 3  # another program disturbed more than four of nine once: 1.062, and 0.961 in 24 pairs of the same wheels


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome.

    Attributes:
        ratio: the median of the pairs' ratios, this tree over the baseline.
        good: at most `LIMIT`.
    """

    ratio: float
    good: bool


def judge(pairs: Sequence[tuple[float, float]], limit: float = LIMIT) -> Verdict:
    """Judge pairs of (baseline, this tree), in any unit of cost for a request, measured right after each other.

    Raises:
        ValueError: there are no pairs, or a cost is not above 0: such a measurement proves nothing.
    """
    if not pairs or any(min(pair) <= 0 for pair in pairs):
        raise ValueError(f"expected pairs of costs above 0, got {list(pairs)}")
    ratio = median(ours / theirs for theirs, ours in pairs)
    return Verdict(ratio, ratio <= limit)


def settle(measured: Iterable[tuple[float, float]], pairs: int = PAIRS) -> Verdict:
    """Judge the first pairs; above the limit, measure as many again, up to `LOOKS` times, and judge all together.

    Args:
        measured: pairs as of `judge`, each measured when it is asked for.
        pairs: the pairs of a look.

    Raises:
        ValueError: as `judge`.
    """
    costs: list[tuple[float, float]] = []
    for pair in measured:
        costs.append(pair)
        if len(costs) % pairs == 0 and (len(costs) == pairs * LOOKS or judge(costs).good):
            break
    return judge(costs)
