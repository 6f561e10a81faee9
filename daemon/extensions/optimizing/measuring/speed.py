"""How long a batch takes with a set of optimisations and with another one, measured in turns.

    turn   1                  2                  3
           without, having    having, without    without, having     …

Other programs of the machine only ever add time, to neighbours in the sequence alike. So the shortest time of each side
is compared: ResNet-18 with `fold` and without, five turns on two cores beside other work, twelve times over: 1.01 to
1.05 by the shortest times, 0.77 to 1.04 by the medians. Where even the shortest is not repeatable the result is unsure.
"""

from collections.abc import Sequence
from enum import Enum, auto
from heapq import nsmallest
from math import inf
from typing import NamedTuple

MARGIN = 1.02  # the least gain that counts
STEADY = 1.05  # a machine on which a side's second shortest time is at most so many times its shortest is quiet
LEAST_TURNS, USUAL_TURNS, MOST_TURNS = 2, 3, 15
CLEAR = 1.25  # a gain, or its inverse a loss, that needs no more than the usual turns


class Result(Enum):
    """Whether a set is faster."""

    FASTER = auto()
    NO_GAIN = auto()
    UNSURE = auto()  # other programs disturb the measurement by more than what there is to see


class Speed(NamedTuple):
    """Seconds that a batch takes without the set, and having it: the shortest of the measured.

    Attributes:
        noise: how many times longer the second shortest is; of the two sides the larger number.
    """

    without: float
    having: float
    noise: float = 1.0

    @property
    def gain(self) -> float:
        """How many times faster; below 1 for a loss."""
        return self.without / self.having if self.having else inf

    @property
    def result(self) -> Result:
        if self.gain >= MARGIN:
            return Result.FASTER if self.gain >= self.noise else Result.UNSURE
        return Result.NO_GAIN if self.noise <= STEADY or self.gain <= 1 / self.noise else Result.UNSURE


def judge(without: Sequence[float], having: Sequence[float]) -> Speed:
    """Return the speed that measured seconds show, at least two of each."""
    (best, second), (our_best, our_second) = nsmallest(2, without), nsmallest(2, having)
    noise = max(second / best if best else inf, our_second / our_best if our_best else inf)
    return Speed(best, our_best, noise)


def is_enough(
    without: Sequence[float], having: Sequence[float], elapsed: float, budget: float, patience: float = 0.0
) -> bool:
    """Return whether no further turn is needed after so many seconds.

    Args:
        budget: seconds after which no further turn begins if the result is sure; after twice as many in any case.
        patience: seconds after which a result that is still unsure ends, too, where that is later.
    """
    turns = len(without)
    if turns < LEAST_TURNS or (turns < USUAL_TURNS and elapsed < 2 * budget):
        return False
    speed = judge(without, having)
    unsure = speed.result is Result.UNSURE
    if turns >= MOST_TURNS or elapsed >= 2 * budget:
        return not unsure or elapsed >= patience
    clear = not 1 / CLEAR < speed.gain < CLEAR
    return not unsure and (clear or elapsed >= budget)
