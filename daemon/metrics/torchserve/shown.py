"""The families that `/metrics` shows, by the operator's selection."""

from collections.abc import Iterable, Iterator

from prometheus_client import Metric

from daemon.metrics.torchserve.selection import SERVER, Selection


def shown(families: Iterable[Metric], selection: Selection) -> Iterator[Metric]:
    """Yield the selected families; those of the server with the declared names of their dimensions."""
    found = set()
    for each in families:
        found.add(each.name)
        if selection.shown(each.name):
            if each.name in SERVER:
                each.samples = [
                    sample._replace(labels=selection.dimensions(each.name, sample.labels)) for sample in each.samples
                ]
            yield each
    for name, kind in selection.without_values(found).items():
        yield Metric(name, f"{name} has no value yet", kind)
