"""The settings that `tsctl tune` tries: few, since each takes seconds on the real model."""

from collections.abc import Sequence
from math import ceil
from typing import Any, NamedTuple

SIZES = (1, 8, 32)  # of batches; between two of them the rate changes little
WORKERS = (1, 2)


class TriedSetting(NamedTuple):
    """One way to serve a model; `max_delay` in milliseconds, `batching` the policy."""

    batch_size: int
    max_delay: float
    batching: str
    workers: int

    @property
    def document(self) -> dict[str, Any]:
        """The setting by the names in `model-config.yaml`."""
        size, delay, batching, workers = self
        return {
            "batchSize": size, "maxBatchDelay": delay, "batching": batching, "minWorkers": workers,
            "maxWorkers": workers,
        }  # fmt: skip


def present_setting(worker: dict[str, Any]) -> TriedSetting:
    """Return how a model is served, by the daemon's document `/tsctl/worker/MODEL`; one worker at least."""
    said = worker["settings"]
    return TriedSetting(said["batchSize"], float(said["maxBatchDelay"]), said["batching"], max(1, worker["workers"]))


def settings_to_try(
    now: TriedSetting,
    cores: int,
    *,
    most: int,
    workers: Sequence[int] = (),
    clients: int | None = None,
    batch_ms: float | None = None,
) -> list[TriedSetting]:
    """Return the settings: that of now first, and the others in order of their workers, which are loaded anew.

    Args:
        cores: that the workers may use.
        most: the largest batch size.
        workers: numbers of workers; empty for one, two where there are two cores, and as many as now.
        clients: of a closed loop: at most so many requests wait at a time. None for an open loop.
        batch_ms: what each batch takes beside its requests, as the daemon has learned; None if it has not.
    """
    counts = set(workers) or {count for count in WORKERS if count <= cores} | {now.workers}
    sizes = [*(size for size in SIZES if size < most), most]
    if clients is not None:  # larger ones never fill
        sizes = [size for size, before in zip(sizes, [0, *sizes], strict=False) if before < clients]
    found = [TriedSetting(size, now.max_delay, "auto", count) for size in sizes for count in counts]
    if now.workers in counts:
        found.append(now._replace(batching="auto"))
        if batch_ms is not None and now.max_delay < batch_ms and sizes[-1] > 1:
            # `auto` never waits longer than that: a smaller maximum is all that can hold it back.
            found.append(TriedSetting(sizes[-1], float(ceil(batch_ms)), "auto", now.workers))
    others = {setting for setting in found if not _is_same(setting, now)}
    return [now, *sorted(others, key=lambda each: (each.workers != now.workers, each.workers, each))]


def _is_same(one: TriedSetting, other: TriedSetting) -> bool:
    """Return whether two settings do the same: a batch of one request waits for nothing."""
    if one.batch_size == other.batch_size == 1:
        return one.workers == other.workers
    return one == other


def setting_text(setting: TriedSetting, now: TriedSetting) -> str:
    """Return a setting in words; its delay only where this is not that of now."""
    delay = f", delay at most {setting.max_delay:g} ms" if setting.max_delay != now.max_delay else ""
    workers = f"{setting.workers} worker{'s' * (setting.workers > 1)}"
    return f"batch size {setting.batch_size}{delay}, {setting.batching}, {workers}"


def commands(name: str, setting: TriedSetting, now: TriedSetting) -> list[str]:
    """Return the commands that change what differs from now."""
    size, delay, batching, workers = setting
    changes = f"tsctl set {name} --batch-size {size} --max-delay {delay:g} --batching {batching}"
    scale = f"tsctl scale {name} {workers}"
    return [changes] * (setting[:3] != now[:3]) + [scale] * (workers != now.workers)
