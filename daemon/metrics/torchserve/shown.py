"""The families that `/metrics` shows, by the operator's selection."""

from collections.abc import Iterable, Iterator

from prometheus_client import Metric

from daemon.metrics.torchserve.selection import SERVER, Selection


def shown(families: Iterable[Metric], selection: Selection) -> Iterator[Metric]:
    """Yield the selected families; those of the server with the declared names of their dimensions."""
    for each in families:
        if selection.shown(each.name):
            if each.name in SERVER:
                each.samples = [
                    sample._replace(labels=selection.dimensions(each.name, sample.labels)) for sample in each.samples
                ]
            yield each
