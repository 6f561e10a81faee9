"""The protocol's documents about the server and its models, and those of Triton's extensions that its clients read."""

import time
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.model_settings.declarations import DeclaredTensor, show_declaration
from tsctl.daemon.models.tensors import tensors_of
from tsctl.daemon.models.version import ModelVersion

EXTENSIONS = ("binary_tensor_data", "model_configuration", "model_repository", "statistics")
# Triton's names of the datatypes in a model's configuration (model_config.proto); BYTES is a string there.
_TYPES = {"BYTES": "TYPE_STRING"}


def server_metadata() -> dict[str, Any]:
    return {"name": "tsctl", "version": version("tsctl"), "extensions": list(EXTENSIONS)}


def model_metadata(model: ModelVersion, versions: Iterable[ModelVersion]) -> dict[str, Any]:
    """Return the document of a version; the lists of tensors are empty if neither archive nor handler declares any.

    Args:
        versions: all versions of the model.
    """
    inputs, outputs = tensors_of(model)
    return {
        "name": model.name,
        "versions": [each.version for each in versions],
        "platform": model.settings.platform,
        "inputs": list(map(show_declaration, inputs)),
        "outputs": list(map(show_declaration, outputs)),
    }


def model_config(model: ModelVersion) -> dict[str, Any]:
    """Return the configuration of a version, in the words of Triton's model configuration.

    Each request is one row of a batch of ours, whatever its tensors' first dimension: `max_batch_size` is 0, so that
    clients add no dimension of their own.
    """
    inputs, outputs = tensors_of(model)
    declared = model.declared
    return {
        "name": model.name,
        "platform": model.settings.platform,
        "backend": "pytorch",
        "version_policy": {"specific": {"versions": [model.version]}},
        "max_batch_size": 0,
        "input": [_configured(each) | {"optional": each.optional} for each in inputs],
        "output": [_configured(each) for each in outputs],
        "instance_group": [{"name": model.name, "count": model.pool.wanted, "kind": "KIND_AUTO"}],
        "model_transaction_policy": {"decoupled": declared is not None and declared.streams},
    }


def statistics(model: ModelVersion, ended: float | None) -> dict[str, Any]:
    """Return the statistics of a version: counts, and the sums of times in nanoseconds.

    Args:
        ended: when the last answered batch came back, in seconds since 1970; None if none has.
    """
    metrics = model.metrics
    batches, rows = sum(metrics.inference_time.counts), sum(metrics.fine.counts)
    bad = metrics.rejected.sum + metrics.failed.sum + metrics.late.sum + metrics.given_up_times.sum
    good = sum(count for code, count in metrics.codes.items() if code < 400)
    nothing = {"count": 0, "ns": 0}
    aside = {"count": batches, "ns": 0}  # not measured; perf_analyzer ends where the three counts of computing differ
    return {
        "name": model.name,
        "version": model.version,
        "last_inference": 0 if ended is None else round(ended * 1000),
        "inference_count": rows,
        "execution_count": batches,
        "inference_stats": {
            "success": {"count": good, "ns": _nanoseconds(metrics.ok.sum + metrics.held_up.sum)},
            "fail": {"count": metrics.codes.total() - good, "ns": _nanoseconds(bad)},
            "queue": {"count": sum(metrics.queue_time.counts), "ns": _nanoseconds(metrics.queue_time.sum)},
            "compute_input": aside,
            "compute_infer": {"count": batches, "ns": _nanoseconds(metrics.inference_time.sum)},
            "compute_output": aside,
            "cache_hit": nothing,
            "cache_miss": nothing,
        },
        "batch_stats": [],
    }


def statistics_of(model: ModelVersion) -> dict[str, Any]:
    """Return the statistics of a version as of now."""
    return statistics(model, last_answered(model.metrics, model.clock.now(), time.time()))


def last_answered(metrics: VersionMetrics, now: float, today: float) -> float | None:
    """Return when the last answered batch came back, in seconds since 1970; None if none has.

    Args:
        now: on the daemon's clock.
        today: the same moment, in seconds since 1970.
    """
    return today - (now - metrics.returned_at) if metrics.returned_at else None


def _configured(tensor: DeclaredTensor) -> dict[str, Any]:
    kind = _TYPES.get(tensor.datatype, f"TYPE_{tensor.datatype}")
    return {"name": tensor.name, "data_type": kind, "dims": list(tensor.shape)}


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
