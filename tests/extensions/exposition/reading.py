"""The text of families, as a test wants it."""

from collections.abc import Collection, Iterable

from tests.metrics.reading import values
from tsctl.daemon.extensions.exposition.text import MetricFamily, texts


def render(families: Iterable[MetricFamily], names: Collection[str] = ()) -> bytes:
    """Return the whole text."""
    return b"".join(texts(families, names))


def shown(families: Iterable[MetricFamily]) -> dict[str, float]:
    return values(render(families).decode())
