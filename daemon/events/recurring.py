"""Facts that recur: the first is told at once, the others once a minute with their count.

quiet ──first──▶ told, and counting ──a minute later──▶ told with the count, and counting
  ▲                       └─────── a minute without another ───────┐
  └────────────────────────────────────────────────────────────────┘
"""

from dataclasses import dataclass, field

from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.events.events import Events

EVERY = 60.0  # seconds
MOST_IDS = 10  # request ids in an event
MOST_SERIES = 1000  # at a time; beyond, what recurs is not told

Key = tuple[str, str, str, str]  # kind, model, version, reason


@dataclass(slots=True)
class _Series:
    """One fact that recurs: how often since it was told, and since the series began."""

    timer: Timer
    text: str
    total: int
    count: int = 0
    requests: list[str] = field(default_factory=list)


class Recurring:
    """Facts that may recur a thousand times a second; those of each kind, version and reason are counted apart.

    Attributes:
        events: receives them.
    """

    def __init__(self, events: Events, clock: Clock) -> None:
        self.events = events
        self._clock = clock
        self._series: dict[Key, _Series] = {}

    def __repr__(self) -> str:
        return f"<Recurring {len(self._series)} series>"

    def note(
        self, kind: str, text: str, *, model: str = "", version: str = "", reason: str = "", request: str = "",
        count: int = 1,
    ) -> None:  # fmt: skip
        """Note that something has happened.

        Args:
            kind: a key of `KINDS`.
            text: the latest one is told with the count of a minute.
            reason: facts with another one are counted apart.
            request: the id of the request; empty for none.
            count: how often it has happened.
        """
        key = (kind, model, version, reason)
        series = self._series.get(key)
        if series is not None:
            series.count += count
            series.total += count
            series.text = text
            if request and len(series.requests) < MOST_IDS:
                series.requests.append(request)
        elif len(self._series) < MOST_SERIES:
            self._series[key] = _Series(self._clock.later(EVERY, lambda: self._due(key)), text, count)
            told = text if count == 1 else f"{text} ({count} at once)"
            self.events.add(kind, told, model=model, version=version, requests=[request] if request else [])

    def close(self, model: str = "", version: str = "") -> None:
        """Add the events of this version, or of all, that wait for the end of their minute."""
        for key in [key for key in self._series if not model or key[1:3] == (model, version)]:
            series = self._series.pop(key)
            series.timer.cancel()
            self._tell(key, series)

    def _due(self, key: Key) -> None:
        series = self._series[key]
        if not series.count:
            del self._series[key]
            return
        series.timer = self._clock.later(EVERY, lambda: self._due(key))  # first: it goes on whatever is raised
        self._tell(key, series)
        series.count, series.requests = 0, []

    def _tell(self, key: Key, series: _Series) -> None:
        if series.count:
            kind, model, version, _ = key
            text = f"{series.text} ({series.count} more within {EVERY:g} s, {series.total} in all)"
            self.events.add(kind, text, model=model, version=version, requests=series.requests)
