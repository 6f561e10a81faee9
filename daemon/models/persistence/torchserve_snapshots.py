"""TorchServe's snapshots: what is registered, as a config.properties from which torchserve and tsctl start.

    LOG_LOCATION/config/20260131120000123-startup.cfg     the daemon listens, and has tried its first models
                        20260131120501456-snapshot.cfg    the registrations have changed
                        20260131180000789-shutdown.cfg    the daemon is told to stop

They are for scripts that were written for TorchServe: the daemon itself reads its own snapshot (snapshot_file.py),
which knows more, and none of these unless `--ts-config` names it.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from daemon.models.registry import Registry
from daemon.models.version import ModelVersion

Models = dict[str, dict[str, dict[str, Any]]]

MOST_FILES = 100  # the oldest go first

_log = logging.getLogger("daemon.models")


class TorchServeSnapshots:
    """The snapshots in one directory.

    Args:
        properties: the keys of config.properties that the daemon was started with.
        wall: returns the time in seconds since the epoch.
    """

    def __init__(
        self, directory: Path, registry: Registry, properties: Mapping[str, str], wall: Callable[[], float] = time.time
    ) -> None:
        self._directory = directory
        self._registry = registry
        self._properties = properties
        self._wall = wall
        self._failing = False
        self._models: Models | None = None  # of the last file

    def changed(self) -> None:
        """Write a snapshot, if it differs from the last one."""
        if models_of(self._registry) != self._models:
            self.write("snapshot")

    def write(self, kind: Literal["startup", "snapshot", "shutdown"]) -> None:
        """Write what is registered; a failure is one line in the log."""
        now, self._models = self._wall(), models_of(self._registry)
        name = f"{datetime.fromtimestamp(now):%Y%m%d%H%M%S}{int(now * 1000) % 1000:03}-{kind}.cfg"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._remove_oldest()
            with (self._directory / name).open("x", encoding="utf-8") as file:
                file.write(text_of(self._models, self._properties, name, now))
        except FileExistsError:
            return  # as TorchServe: that of the same millisecond stays
        except OSError as error:
            if not self._failing:
                _log.warning("cannot write TorchServe's snapshot %s: %s", self._directory / name, error.strerror)
            self._failing = True
        else:
            self._failing = False

    def _remove_oldest(self) -> None:
        ours = sorted(self._directory.glob("[0-9]*-s*.cfg"))
        for file in ours[: max(0, len(ours) - MOST_FILES + 1)]:
            file.unlink(missing_ok=True)


def models_of(registry: Registry) -> Models:
    """Return the state of each version, as TorchServe names it, by model and version."""
    models: Models = {}
    for model in registry:
        if not (model.lost or model.request.ephemeral):
            models.setdefault(model.name, {})[model.version] = _state(model, default=registry.is_default(model))
    return models


def text_of(models: Models, properties: Mapping[str, str], name: str, now: float) -> str:
    """Return the file's text: the properties, and `model_snapshot` as TorchServe writes it."""
    import javaproperties  # here, because it takes 55 ms, which a daemon without these files saves

    document = {
        "name": name, "modelCount": sum(map(len, models.values())), "created": int(now * 1000), "models": models,
    }  # fmt: skip
    snapshot = {"model_snapshot": json.dumps(document, indent=2)}
    return javaproperties.dumps({**properties, **snapshot}, comments="Saving snapshot", timestamp=False)


def _state(model: ModelVersion, *, default: bool) -> dict[str, Any]:
    settings = model.settings
    return {
        "defaultVersion": default,
        "marName": model.source.url.rpartition("/")[2],
        "minWorkers": model.min_workers,
        "maxWorkers": model.max_workers,
        "batchSize": settings.batch_size,
        "maxBatchDelay": round(settings.max_delay * 1000),
        "responseTimeout": round(settings.response_timeout),
        "startupTimeout": round(settings.startup_timeout),
        "runtimeType": "python",
    }
