"""The clients of a replaced daemon that do not take their answers, or send on after one: how long it waits for them.

Without this bound, a client that reads a byte a minute would keep the process, its workers and their memory for ever.
A client that reads has `grace` seconds for what it was answered, however late the answer came; once the grace of the
upgrade is over, one that does not move has `SILENCE` seconds of them.
"""

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

SILENCE = 2.0  # seconds without a byte taken


class Farewell(Generic[T]):
    """Times are seconds on the caller's clock.

    Args:
        grace: seconds since the replacement, until which nobody is left.
        now: the time of the replacement.
    """

    def __init__(self, grace: float, now: float) -> None:
        self._grace = grace
        self._over = now + grace
        self._seen: dict[T, tuple[float, float, int]] = {}  # since when; when it moved last; bytes to take

    def overdue(self, unsent: Mapping[T, int], now: float) -> list[T]:
        """Return the clients that are not waited for any more.

        Args:
            unsent: the bytes that each client has not taken, of those for which nothing else is done.
        """
        seen = {}
        for who, count in unsent.items():
            since, moved, before = self._seen.get(who, (now, now, count))
            seen[who] = (since, moved if count == before else now, count)
        self._seen = seen
        if now < self._over:
            return []
        return [who for who, (since, moved, _) in seen.items() if now >= since + self._grace or now >= moved + SILENCE]
