"""All counts so far, which a daemon hands to the one that replaces it: counters never fall, and lose no answer.

The old daemon sends them when the new one takes over, and again while it answers its remaining clients. A total that
is sent twice, or that covers several others, counts once.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.metrics.version import Sums, VersionMetrics
from tsctl.handlers.wire import Measurement

_Key = tuple[str, str]
_CLIENT = "client "


class HistogramTotals(msgspec.Struct, frozen=True, array_like=True):
    counts: list[int]
    sum: float


_SUMS = ("requests", "latency", "queue_time", "received", "sent")  # of `version.Sums`, in this order


class VersionTotals(msgspec.Struct, frozen=True, omit_defaults=True):
    """The counts of one version; of the names, those that a daemon does not know are ignored.

    Attributes:
        counters: see `VersionMetrics.counters`; statuses as text.
        histograms: see `VersionMetrics.histograms`; without those that are empty.
        named, unnamed: see `VersionMetrics`; the numbers of `_SUMS`.
        emitted: the handlers' own counters and histograms.
    """

    name: str
    version: str
    counters: dict[str, dict[str, int]] = {}
    histograms: dict[str, HistogramTotals] = {}
    named: tuple[int | float, ...] = (0,) * len(_SUMS)
    unnamed: tuple[int | float, ...] = (0,) * len(_SUMS)
    emitted: list[Measurement] = []


class Totals(msgspec.Struct, frozen=True, omit_defaults=True, tag="counts"):
    """Counts of a daemon.

    Attributes:
        tables: `answers` and `events`, see `Metrics`, and `client NAME` for each of its clients; as far as they differ
            from what was sent before.
        versions: likewise.
    """

    tables: dict[str, dict[str, int]] = {}
    versions: list[VersionTotals] = []


def _tables_of(metrics: Metrics) -> dict[str, dict[str, int]]:
    clients = {f"{_CLIENT}{name}": codes for name, codes in metrics.clients.items()}
    return {"answers": metrics.answers, "events": metrics.events, **clients}


class OutgoingCounts:
    """The counts of this daemon, for the one that replaces it."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._versions: dict[_Key, VersionTotals] = {}
        self._tables: dict[str, dict[str, int]] = {}

    def changed(self) -> Iterator[Totals]:
        """Yield what has changed since the last call: the answers, then each version in a message of its own."""
        tables = {name: dict(table) for name, table in _tables_of(self._metrics).items()}
        if changed := {name: table for name, table in tables.items() if table != self._tables.get(name, {})}:
            self._tables = tables
            yield Totals(changed)
        for version in self._metrics.counted:
            made = _totals_of(version)
            key = (made.name, made.version)
            if made != self._versions.get(key):
                self._versions[key] = made
                yield Totals(versions=[made])


class IncomingCounts:
    """Adds to the metrics of this daemon what the one that it replaces has counted."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._versions: dict[_Key, VersionTotals] = {}
        self._tables: dict[str, dict[str, int]] = {}

    def add_totals(self, totals: Totals) -> None:
        """Add what was counted since the totals that came before."""
        for name in totals.tables:
            if name.startswith(_CLIENT):
                self._metrics.clients[name.removeprefix(_CLIENT)]  # makes one that is missing
        tables = _tables_of(self._metrics)
        for name, told in totals.tables.items():
            table, before = tables.get(name, {}), self._tables.get(name, {})
            for key, count in told.items():
                if key in table or isinstance(table, Counter):
                    table[key] += count - before.get(key, 0)
            self._tables[name] = told
        for new in totals.versions:
            named = (new.name, new.version)
            old = self._versions.get(named)
            version = self._metrics.find(*named)
            _add(version, new, old or VersionTotals(*named))
            if old is None:
                version.forget_recent()  # the counts of days are not those of the last minute
            self._versions[named] = new


def _totals_of(version: VersionMetrics) -> VersionTotals:
    return VersionTotals(
        version.name,
        version.version,
        {name: {str(key): n for key, n in counter.items()} for name, counter in version.counters.items() if counter},
        {
            name: HistogramTotals(list(each.counts), each.sum)
            for name, each in version.histograms.items()
            if any(each.counts)
        },
        _sums_of(version.named),
        _sums_of(version.unnamed),
        version.emitted.totals,
    )


def _sums_of(sums: Sums) -> tuple[int | float, ...]:
    return tuple(getattr(sums, name) for name in _SUMS)


def _add(version: VersionMetrics, new: VersionTotals, old: VersionTotals) -> None:
    for name, counter in version.counters.items():
        before = old.counters.get(name, {})
        for key, count in new.counters.get(name, {}).items():
            _count(counter, int(key) if name == "codes" else key, count - before.get(key, 0))
    for name, histogram in version.histograms.items():
        now = new.histograms.get(name)
        if now is None or len(now.counts) != len(histogram.counts):  # a tsctl with other bounds
            continue
        then = old.histograms.get(name) or HistogramTotals([0] * len(now.counts), 0.0)
        histogram.add([a - b for a, b in zip(now.counts, then.counts, strict=True)], now.sum - then.sum)
    for sums, added, removed in (
        (version.named, new.named, old.named), (version.unnamed, new.unnamed, old.unnamed)
    ):  # fmt: skip
        known = (*removed, *(0,) * len(_SUMS))
        for name, total, told in zip(_SUMS, added, known, strict=False):  # a tsctl with fewer sums, or with more
            setattr(sums, name, getattr(sums, name) + total - told)
    version.emitted.add_measurements(list(_increases(new.emitted, {_key(each): each for each in old.emitted})))


def _count(counter: Any, key: Any, more: int) -> None:
    if more:  # a key with zero would be a series
        counter[key] += more


def _increases(now: list[Measurement], before: Mapping[Any, Measurement]) -> Iterator[Measurement]:
    for each in now:
        old = before.get(_key(each))
        if old is None:
            yield each
        elif each != old and len(each.buckets) == len(old.buckets):
            buckets = [a - b for a, b in zip(each.buckets, old.buckets, strict=True)]
            yield Measurement(each.kind, each.name, each.unit, each.labels, each.value - old.value, buckets)


def _key(measured: Measurement) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    return measured.kind, measured.name, measured.labels
