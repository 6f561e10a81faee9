"""The modes of a run's versions: how their workers run requests, drawn from random numbers of their own.

seeds up to BATCHES_ONLY    whole batches, as before there were other modes: what such a seed found once stays found
the seeds after them        each version is drawn:

    whole batches               one process, or several (ranks)       with or without sequences
    continuous                  one process, or several               with or without sequences
    async                       one process                           with or without sequences
"""

import random
from typing import Any

from tsctl.daemon.models.settings import ROWS, ModelSettings

BATCHES_ONLY = 100_000
GROUPS = "parallel_type" in ROWS  # of processes: the daemon can do without them
Model = tuple[str, str, ModelSettings]
_TOLD = (
    "policy", "batch_size", "max_delay", "workers", "response_timeout", "startup_timeout", "queue_jobs", "queue_bytes",
    "queue_timeout", "client_timeout", "retry", "continuous", "asynchronous", "sequences", "max_sequences",
    "sequence_jobs", "sequence_idle", "sequence_timeout", *["parallel_type"] * GROUPS,
)  # fmt: skip


def draw_modes(seed: int, models: list[Model]) -> list[Model]:
    """Return the models, each in the mode that it has in this run."""
    return [(name, version, with_mode(settings, seed, f"{name} {version}")) for name, version, settings in models]


def with_mode(settings: ModelSettings, seed: int, what: str) -> ModelSettings:
    """Return settings with a mode that is drawn for this model, or this archive of it."""
    return settings if seed <= BATCHES_ONLY else settings.changed(_draw(seed, what, settings), "archive")


def _draw(seed: int, what: str, settings: ModelSettings) -> dict[str, Any]:
    chance = random.Random(f"mode {seed} {what}")
    pick = chance.choice
    mode = pick(("batch", "continuous", "continuous", "async"))
    values: dict[str, Any] = {
        "continuous": mode == "continuous", "asynchronous": mode == "async", "sequences": False,
    }  # fmt: skip
    if chance.random() < (0.7 if mode == "batch" else 0.4):
        values |= {
            "sequences": True,
            "sequence_idle": pick((0.0, 0.02, 0.3, 300.0)),
            "sequence_timeout": pick((0.0, 0.0, 0.3, 3.0)),
            "max_sequences": pick((1, 3, 100)),
            "sequence_jobs": pick((1, 3, 100, 100)),
        }
    if GROUPS:
        values["parallel_type"] = ""
    # Two ranks need two GPUs, or none.
    if GROUPS and mode != "async" and len(settings.devices) != 1 and chance.random() < 0.25:
        values |= {"parallel_type": pick(("tp", "pp")), "parallel_level": 2}
    return values


def words_of(settings: ModelSettings) -> str:
    """Return what was drawn for a version, and is not off, for the story."""
    return ", ".join(f"{name} {value}" for name in _TOLD if (value := getattr(settings, name)))
