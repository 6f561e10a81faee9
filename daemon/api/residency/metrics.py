"""Metrics of versions in memory."""

from collections.abc import Callable, Iterator

from tsctl.daemon.metrics.exposition import MetricFamily, family
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.residency.state import ResidenceState
from tsctl.daemon.models.version import ModelVersion

GAUGES: tuple[tuple[str, str, Callable[[ModelVersion], float]], ...] = (
    (
        "tsctl_model_loaded",
        "Whether the version is in memory, with a worker that has been ready",
        lambda model: model.residence.state is ResidenceState.LOADED,
    ),
    (
        "tsctl_model_memory_bytes",
        "Memory of the host that the version took when it was last measured",
        lambda model: model.residence.memory.get("host", 0),
    ),
    (
        "tsctl_model_load_seconds",
        "How long the last load of the version took",
        lambda model: model.residence.load_seconds or 0.0,
    ),
)
LOADS = ("tsctl_model_loads_total", "Loads of the version, by reason: request, startup, operator")
UNLOADS = ("tsctl_model_unloads_total", "Unloadings of the version, by reason: idle, room, operator")


def residency(registry: Registry) -> Iterator[MetricFamily]:
    """Yield the gauges and counters of each version."""
    models = [({"model": model.name, "version": model.version}, model.residence, model) for model in registry]
    for name, text, value in GAUGES:
        yield family(name, "gauge", text, [(labels, float(value(model))) for labels, _, model in models])
    for (name, text), counts in ((LOADS, "loads"), (UNLOADS, "unloads")):
        yield family(
            name, "counter", text,
            [
                (labels | {"reason": reason}, count)
                for labels, residence, _ in models
                for reason, count in sorted(getattr(residence, counts).items())
            ],
        )  # fmt: skip
