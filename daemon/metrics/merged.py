"""The metrics emitted by the handlers of all versions, as families: a name once, with one type."""

import logging
from collections.abc import Callable, Iterable, Iterator

from tsctl.daemon.metrics.emitted import Series
from tsctl.daemon.metrics.exposition import Labels, MetricFamily, family, histograms
from tsctl.daemon.metrics.histogram import Histogram
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.handlers.wire import BOUNDS

_Key = tuple[tuple[str, str], ...]

_log = logging.getLogger("tsctl.daemon.metrics")


def _as_they_are(name: str, labels: Labels) -> Labels:  # noqa: ARG001 - as `Selection.model_labels`
    return labels


def emitted(metrics: Metrics, labels_of: Callable[[str, Labels], Labels] = _as_they_are) -> Iterator[MetricFamily]:
    """Yield the families.

    Where versions differ in the type of a name, the version registered last is right, and
    the others' series are hidden until it has gone. Series with the same labels, as those of two
    versions may have, become one: counters and histograms are summed, of gauges the last one counts.

    Args:
        labels_of: a name and the labels of a series → those that are shown.
    """
    by_name: dict[str, list[Series]] = {}
    live = [each for version in reversed(metrics.versions) for each in version.emitted.series]
    left = [each for version in metrics.left for each in version.emitted.counters]
    for series in (*live, *left):
        same = by_name.setdefault(series.name, [])
        if same and same[0].kind != series.kind:
            _warn(
                metrics,
                series.name,
                f"`{series.name}` is a {same[0].kind} in one version and a {series.kind} in another",
            )
        else:
            same.append(series)
    lines = {name: group for name, group in by_name.items() if not _part_of_histogram(metrics, name, by_name)}
    for name, group in lines.items():
        text = f"Emitted by a handler{f', in {group[0].unit}' if group[0].unit else ''}"
        if group[0].kind == "histogram":
            yield histograms(name, text, _added_up(group, labels_of))
        else:
            yield family(name, group[0].kind, text, _values(group, labels_of))


def _part_of_histogram(metrics: Metrics, name: str, by_name: dict[str, list[Series]]) -> bool:
    """Return whether a name is that of a line of a histogram that is present, too."""
    for suffix in ("_bucket", "_count", "_sum"):
        whole = by_name.get(name.removesuffix(suffix)) if name.endswith(suffix) else None
        if whole and whole[0].kind == "histogram":
            _warn(metrics, name, f"`{name}` is a line of the histogram `{name.removesuffix(suffix)}`")
            return True
    return False


def _values(
    group: Iterable[Series], labels_of: Callable[[str, Labels], Labels]
) -> Iterator[tuple[Labels, float]]:  # fmt: skip
    values: dict[_Key, float] = {}
    shown: dict[_Key, Labels] = {}
    for each in sorted(group, key=lambda series: series.stamp):
        labels = labels_of(each.name, each.labels)
        key = _key(labels)
        values[key] = values.get(key, 0.0) + each.value if each.kind == "counter" else each.value
        shown.setdefault(key, labels)
    return ((dict(shown[key]), value) for key, value in values.items())


def _added_up(
    group: Iterable[Series], labels_of: Callable[[str, Labels], Labels]
) -> Iterator[tuple[Labels, Histogram]]:  # fmt: skip
    whole: dict[_Key, Histogram] = {}
    shown: dict[_Key, Labels] = {}
    for each in group:
        labels = labels_of(each.name, each.labels)
        key = _key(labels)
        whole.setdefault(key, Histogram(BOUNDS)).add(each.histogram.counts, each.histogram.sum)
        shown.setdefault(key, labels)
    return ((dict(shown[key]), histogram) for key, histogram in whole.items())


def _key(labels: Labels) -> _Key:
    return tuple(sorted(labels.items()))


def _warn(metrics: Metrics, name: str, sentence: str) -> None:
    if name not in metrics.warned:
        metrics.warned.add(name)
        _log.warning("metrics of handlers: %s, and is not shown", sentence)
