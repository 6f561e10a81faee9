"""Families of samples, and their text: Prometheus' format 0.0.4, by `prometheus_client`."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache

from prometheus_client import Metric, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.samples import Sample

from daemon.metrics.histogram import Histogram

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

Labels = dict[str, str]


def family(name: str, kind: str, text: str, values: Iterable[tuple[Labels, float]]) -> Metric:
    """Return a family of counters or gauges, one sample for each of `values`."""
    made = Metric(name, text, kind)
    made.samples = [Sample(name, labels, value) for labels, value in values]
    return made


def histograms(name: str, text: str, values: Iterable[tuple[Labels, Histogram]]) -> Metric:
    """Return a family of histograms."""
    made = Metric(name, text, "histogram")
    for labels, histogram in values:
        count = 0
        for bound, within in zip(_bounds(tuple(histogram.bounds)), histogram.counts, strict=True):
            count += within
            made.samples.append(Sample(f"{name}_bucket", labels | {"le": bound}, count))
        made.samples.append(Sample(f"{name}_count", labels, count))
        made.samples.append(Sample(f"{name}_sum", labels, histogram.sum))
    return made


@cache
def _bounds(bounds: Sequence[float]) -> list[str]:
    return [*map(repr, bounds), "+Inf"]


def texts(families: Iterable[Metric], names: Collection[str] = ()) -> Iterator[bytes]:
    """Return the text, a family at a time.

    Args:
        names: of families or of single samples to select; empty for all.
    """
    return (_text(each) for each in families if _keep(each, names))


def render(families: Iterable[Metric], names: Collection[str] = ()) -> bytes:
    """Return the whole text."""
    return b"".join(texts(families, names))


def _keep(made: Metric, names: Collection[str]) -> bool:
    if names and made.name not in names:
        made.samples = [sample for sample in made.samples if sample.name in names]
    return bool(made.samples)


class _One:
    """A collector of one family, for the library."""

    def __init__(self, made: Metric) -> None:
        self._made = made

    def collect(self) -> Iterable[Metric]:
        return (self._made,)


def _text(made: Metric) -> bytes:
    text = generate_latest(_One(made))
    if made.type != "counter":
        return text
    # The library ends a counter's name with `_total` in the head, whatever its samples are called;
    # TorchServe's counters do not end so, and neither do those of handlers.
    for word in (b"HELP", b"TYPE"):
        name = made.name.encode()
        text = text.replace(b"# %s %s_total " % (word, name), b"# %s %s " % (word, name), 1)
    return text
