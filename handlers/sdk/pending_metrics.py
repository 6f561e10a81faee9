"""A handler's measurements since the last batch, sent to the daemon with the next frame.

Measurements are deltas: a counter's sum of increments, a gauge's last value, a histogram's count per bucket. Nothing in
this module raises, whatever a handler reports.
"""

import math
import threading
from bisect import bisect_left
from collections.abc import Iterable

from tsctl.handlers import wire
from tsctl.handlers.texts.encodable import sendable
from tsctl.handlers.wire import LONGEST_LABEL, MOST_LABELS, MOST_SERIES, Kind


def _short(value: object) -> str:
    text = str(value)
    usual = type(text) is str and text.isascii()  # else of a class of the handler's, or not encodable
    return (text if usual else sendable(text))[:LONGEST_LABEL]


class PendingMetrics:
    """Measurements not yet sent. Handlers may report from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[tuple[Kind, str, tuple[tuple[str, str], ...]], wire.Measurement] = {}

    def add(
        self, kind: Kind, name: object, unit: object, labels: Iterable[tuple[object, object]], value: object
    ) -> None:
        """Add one value.

        Args:
            kind: `counter`, `gauge` or `histogram`.
            name, unit: objects of a handler, as the labels are; compiled code would refuse others than str.
            labels: at most `MOST_LABELS`, else the value is dropped; each is cut to `LONGEST_LABEL` characters.
            value: any number. Other values, and a counter's decrease, are dropped.
        """
        try:
            number = float(value)  # type: ignore[arg-type]
            key = (kind, _short(name), tuple((_short(label), _short(content)) for label, content in labels))
            shown_unit = _short(unit)
        except BaseException:  # noqa: BLE001 - user objects; measuring must not fail a prediction
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
                known = self._waiting[key] = wire.Measurement(kind, key[1], shown_unit, key[2], 0.0, buckets)
            total = number if kind == "gauge" else known.value + number
            if kind != "gauge" and not math.isfinite(total):
                return  # the sum has overflowed
            known.value = total
            if kind == "histogram":
                known.buckets[bisect_left(wire.BOUNDS, number)] += 1

    def take_measurements(self) -> list[wire.Measurement]:
        """Return the measurements, and start anew."""
        if not self._waiting:
            return []
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        return list(waiting.values())
