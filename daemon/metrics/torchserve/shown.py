"""The families that `/metrics` shows, by the operator's selection."""

from collections.abc import Iterable, Iterator

from tsctl.daemon.metrics.exposition import MetricFamily, family
from tsctl.daemon.metrics.torchserve.selection import SERVER, Selection


def shown(families: Iterable[MetricFamily], selection: Selection) -> Iterator[MetricFamily]:
    """Yield the selected families; those of the server with the declared names of their dimensions."""
    found = set()
    for each in families:
        found.add(each.name)
        if selection.shown(each.name):
            if each.name in SERVER:
                each.rows = [(selection.dimensions(each.name, labels), value) for labels, value in each.rows]
            yield each
    for name, kind in selection.without_values(found).items():
        yield family(name, kind, f"{name} has no value yet", [])
