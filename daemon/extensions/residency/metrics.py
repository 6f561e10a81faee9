"""Metrics of versions in memory."""

from collections.abc import Iterable, Iterator, Sequence

from tsctl.daemon.extension import MetricRow
from tsctl.daemon.extensions.residency.residence import residence_of
from tsctl.daemon.extensions.residency.state import ResidenceState
from tsctl.daemon.metrics.exposition import MetricFamily, family
from tsctl.daemon.models.version import ModelVersion


def residency_families(rows: Sequence[MetricRow], models: Iterable[ModelVersion]) -> Iterator[MetricFamily]:
    """Yield the gauges and counters of each version, by the extension's rows."""
    versions = [({"model": model.name, "version": model.version}, residence_of(model)) for model in models]
    samples = (
        [(labels, float(each.state is ResidenceState.LOADED)) for labels, each in versions],
        [(labels, float(each.memory.get("host", 0))) for labels, each in versions],
        [(labels, each.load_seconds or 0.0) for labels, each in versions],
        *(
            [
                (labels | {"reason": reason}, count)
                for labels, each in versions
                for reason, count in sorted(getattr(each, counts).items())
            ]
            for counts in ("loads", "unloads")
        ),
    )
    for row, values in zip(rows, samples, strict=True):
        yield family(row.name, row.kind, row.help, values)
