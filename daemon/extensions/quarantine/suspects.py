"""Requests that may end their worker, and for how long equal requests are rejected.

    unknown ──its worker ended of itself──▶ SUSPECT: travels alone ──the second time alone──▶ REFUSED for a minute
       ▲                                       │      ▲                                          │
       └──answered; forgotten; cleared─────────┘      └─────────────the minute is over───────────┘

A worker that ended while it ran several requests does not incriminate one of them, so only ends alone count towards
REFUSED. After the minute one more end alone is enough for another minute. Any answer clears a request.

A request is identified by a digest of its handler's whole input (fingerprint.py). Digests are compared only with those
of requests of the same size, so a service without suspects computes none, and one with suspects only a few.
"""

from collections import Counter, OrderedDict
from dataclasses import dataclass

DEATHS = 2  # workers that ended with it alone
REFUSED = 60.0  # seconds
KEPT = 600.0  # seconds after the last end
MOST = 256  # suspects; beyond, the one whose last worker ended first is forgotten


@dataclass(slots=True)
class Suspect:
    """The record of one request.

    Attributes:
        size: bytes of its parameters.
        deaths: workers that ended of themselves while they ran this request alone.
        died: when the last worker ended with it, alone or not.
        reason: how that worker ended, in words.
    """

    size: int
    deaths: int
    died: float
    reason: str

    def refused_for(self, now: float) -> float:
        """Return the seconds for which an equal request is rejected; 0.0 for none."""
        return max(0.0, self.died + REFUSED - now) if self.deaths >= DEATHS else 0.0


class Suspects:
    """The suspects of one model version. Times are seconds on any one clock."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Suspect] = OrderedDict()  # in the order of their last deaths
        self._sizes: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"<Suspects {len(self)} of {len(self._sizes)} sizes>"

    def has_size(self, size: int) -> bool:
        """Return whether a suspect has so many bytes."""
        return size in self._sizes

    def refused(self, now: float) -> int:
        """Return how many suspects are rejected now."""
        return sum(suspect.refused_for(now) > 0.0 for suspect in self._known.values())

    def died(self, digest: bytes, size: int, alone: bool, reason: str, now: float) -> Suspect:
        """Note that a worker ended of itself while it ran this request.

        Args:
            alone: the worker ran nothing else.
        """
        self.forget(now)
        suspect = self._known.get(digest)
        if suspect is None:
            suspect = self._known[digest] = Suspect(size, 0, now, reason)
            self._sizes[size] += 1
        suspect.deaths += alone
        suspect.died, suspect.reason = now, reason
        self._known.move_to_end(digest)
        if len(self._known) > MOST:
            self._remove(next(iter(self._known)))
        return suspect

    def find(self, digest: bytes, now: float) -> Suspect | None:
        self.forget(now)
        return self._known.get(digest)

    def answered(self, digest: bytes) -> None:
        """Clear a request that a worker has answered and survived."""
        if digest in self._known:
            self._remove(digest)

    def forget(self, now: float) -> None:
        """Drop the suspects that have ended no worker for `KEPT` seconds."""
        while self._known:
            oldest = next(iter(self._known))
            if now - self._known[oldest].died < KEPT:
                return
            self._remove(oldest)

    def clear(self) -> None:
        self._known.clear()
        self._sizes.clear()

    def _remove(self, digest: bytes) -> None:
        size = self._known.pop(digest).size
        self._sizes[size] -= 1
        if not self._sizes[size]:
            del self._sizes[size]
