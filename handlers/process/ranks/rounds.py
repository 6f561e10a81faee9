"""Whether the ranks of a group keep step: each ends a round, the load or a batch, before any begins the next.

    round 0: the load     round 1: a batch     …
    rank 0  ──────┤       ──────┤
    rank 1  ────────┤     ────┤

A rank whose handler raised does not take part in what the others still exchange, and they wait for it for minutes. If
all ranks raise, as for a request that none can read, they end together and go on. So a round is *broken* if a rank
failed in it, and `LATE` seconds later another one has not ended it.
"""

import math

LATE = 5.0  # seconds


class Rounds:
    """The round that runs now; the time is an argument.

    Attributes:
        deadline: when the round is broken; inf while no rank has failed.
    """

    def __init__(self) -> None:
        self.deadline = math.inf
        self._number = 0
        self._waited_for: set[int] = set()
        self._failed: set[int] = set()

    def begin(self, number: int, ranks: int) -> None:
        """Begin a round of this many ranks."""
        self._number = number
        self._waited_for = set(range(ranks))
        self._failed = set()
        self.deadline = math.inf

    def end(self, number: int, rank: int, now: float, *, failed: bool) -> None:
        """Note that a rank has ended a round."""
        if number != self._number:
            return
        self._waited_for.discard(rank)
        if failed:
            self._failed.add(rank)
        if not self._waited_for:
            self.deadline = math.inf
        elif self._failed and self.deadline == math.inf:
            self.deadline = now + LATE

    @property
    def over(self) -> bool:
        """Whether all ranks have ended the round."""
        return not self._waited_for

    def has_ended(self, rank: int) -> bool:
        """Return whether a rank has ended the round."""
        return rank not in self._waited_for

    @property
    def broken(self) -> str:
        """A sentence about a broken round, for people."""
        failed, late = _names(self._failed), _names(self._waited_for)
        return f"the handler raised in {failed}, and {late} did not end the same call within {LATE:g} s"


def _names(ranks: set[int]) -> str:
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, sorted(ranks)))
