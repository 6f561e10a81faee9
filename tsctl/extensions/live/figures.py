"""Rates and latencies of the models, from two answers of `/tsctl/live`: the difference of counts that only rise."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tsctl.gpu_text import card_rows, gpus_of

Key = tuple[str, str]  # name and version
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """One version of a model between two answers.

    Attributes:
        label: its name; with the version, if the daemon has several of the model.
        per_second, errors: answers a second, and requests that count against the version.
        p50, p99: milliseconds, None if a worker answered no request.
        batch: requests in a batch, in the mean; None without a batch.
        memory: resident bytes of its workers.
        cpu: processors that its workers keep busy; None if that is not known yet.
        now: the model's part of the later answer.
    """

    key: Key
    label: str
    per_second: float
    errors: float
    p50: float | None
    p99: float | None
    batch: float | None
    memory: int
    cpu: float | None
    now: Document


def figures(before: Document | None, after: Document) -> list[ModelFigures]:
    """Return the figures of each model in the later answer.

    Args:
        before: an earlier answer; None, or that of another daemon, for what the daemon remembers of the last minute.
    """
    if before is not None and before["started"] != after["started"]:
        before = None
    seconds = 0.0 if before is None else after["time"] - before["time"]
    known = {} if before is None or seconds <= 0 else {key_of(model): model for model in before["models"]}
    names = [model["name"] for model in after["models"]]
    return [
        _figures(model, known.get(key_of(model)), seconds, several=names.count(model["name"]) > 1)
        for model in after["models"]
    ]


def cards_of(latest: Document | None, models: Sequence[ModelFigures]) -> list[str]:
    """Return a text on the GPUs that these versions are on, for each kind."""
    gpus = () if latest is None else latest.get("gpus", ())  # not of a daemon of before
    return [": ".join(row) for row in card_rows(gpus, gpus_of(each.now for each in models))]


def share_text(model: Document) -> str:
    """Return a version's share of its model's requests, `-` for a model without a route."""
    if "share" not in model:
        return "-"
    return "shadow" if model["shadow"] else f"{model['share'] * 100:.3g}%"


def key_of(model: Document) -> Key:
    return model["name"], model["version"]


def _figures(now: Document, before: Document | None, seconds: float, *, several: bool) -> ModelFigures:
    key = key_of(now)
    label = "/".join(key) if several else key[0]
    memory = sum(worker["memory"] for worker in now["workers"])
    if before is None:
        recent = now["recent"]
        minute = recent["seconds"] or 1
        return ModelFigures(
            key, label, recent["requests"] / minute, recent["errors"] / minute, recent["p50Ms"], recent["p99Ms"], None,
            memory, None, now,
        )  # fmt: skip
    bounds = now["latency"]["bounds"]
    latencies = _risen(before["latency"]["counts"], now["latency"]["counts"])
    batches, requests = (rise(before["batches"][what], now["batches"][what]) for what in ("total", "requests"))
    return ModelFigures(
        key,
        label,
        rise(before["requests"]["total"], now["requests"]["total"]) / seconds,
        rise(before["requests"]["errors"], now["requests"]["errors"]) / seconds,
        quantile(bounds, latencies, 0.5),
        quantile(bounds, latencies, 0.99),
        requests / batches if batches else None,
        memory,
        _processors(before, now, seconds),
        now,
    )


def rise(before: float, after: float) -> float:
    """Return how much a count has risen. One that has fallen began anew: the model was registered again."""
    return after - before if after >= before else after


def quantile(bounds: Sequence[float], counts: Sequence[float], q: float) -> float | None:
    """Return an estimate of a quantile in milliseconds: the geometric middle of its bucket; None without values.

    Args:
        bounds: the largest value of each bucket in seconds; one more bucket has larger values, which count as the last.
        counts: values in each bucket.
    """
    left = q * sum(counts)
    for index, count in enumerate(counts):
        left -= count
        if count and left <= 0:
            low, high = (bounds[max(0, min(each, len(bounds) - 1))] for each in (index - 1, index))
            return 1000 * math.sqrt(low * high)
    return None


def _risen(before: Sequence[int], after: Sequence[int]) -> list[float]:
    if sum(after) < sum(before) or len(before) != len(after):
        return [*map(float, after)]
    return [rise(old, new) for old, new in zip(before, after, strict=True)]


def _processors(before: Document, now: Document, seconds: float) -> float:
    """Return how many processors the workers kept busy; one that has started since counts from its start."""
    then = {worker["pid"]: worker["cpuSeconds"] for worker in before["workers"]}
    spent = sum(rise(then.get(worker["pid"], 0.0), worker["cpuSeconds"]) for worker in now["workers"])
    return spent / seconds
