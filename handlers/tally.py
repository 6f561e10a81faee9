"""What a handler has measured since the last batch: it travels to the daemon with the next frame.

Deltas: a counter's increments are added up, of a gauge the last value goes, of a histogram how many
values fell into each bucket. Nothing in here raises, whatever a handler reports.
"""

import math
import threading
from bisect import bisect_left
from collections.abc import Iterable

from handlers import wire
from handlers.wire import LONGEST_LABEL, MOST_LABELS, MOST_SERIES, Kind, sendable


def _short(value: object) -> str:
    return sendable(value)[:LONGEST_LABEL]


class Tally:
    """Measurements that have not been sent yet. Handlers may report from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[tuple[Kind, str, tuple[tuple[str, str], ...]], wire.Measurement] = {}

    def add(self, kind: Kind, name: str, unit: str, labels: Iterable[tuple[object, object]], value: object) -> None:
        """Keep one value.

        Args:
            kind: `counter`, `gauge` or `histogram`.
            labels: at most `MOST_LABELS`, else nothing is kept; each is cut to `LONGEST_LABEL` characters.
            value: anything that is a number. What is none is not kept, and neither is a counter's decrease.
        """
        try:
            number = float(value)  # type: ignore[arg-type]
            key = (kind, _short(name), tuple((_short(label), _short(content)) for label, content in labels))
            unit = _short(unit)
        except Exception:  # noqa: BLE001 - a user's objects, and measuring must not fail a prediction
            return
        if len(key[2]) > MOST_LABELS:
            return
        if kind != "gauge" and (not math.isfinite(number) or (kind == "counter" and number < 0)):
            return
        with self._lock:
            known = self._waiting.get(key)
            if known is None:
                if len(self._waiting) >= MOST_SERIES:
                    return
                buckets = [0] * (len(wire.BOUNDS) + 1) if kind == "histogram" else []
                known = self._waiting[key] = wire.Measurement(kind, key[1], unit, key[2], 0.0, buckets)
            total = number if kind == "gauge" else known.value + number
            if kind != "gauge" and not math.isfinite(total):
                return  # a sum that is too large is no sum any more
            known.value = total
            if kind == "histogram":
                known.buckets[bisect_left(wire.BOUNDS, number)] += 1

    def take(self) -> list[wire.Measurement]:
        """Give what was kept, and begin anew."""
        if not self._waiting:
            return []
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        return list(waiting.values())
