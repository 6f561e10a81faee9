"""TorchServe's snapshots: what is registered, as a config.properties from which torchserve and tsctl start.

    LOG_LOCATION/config/20260131120000123-startup.cfg     the daemon listens, and has tried its first models
                        20260131120501456-snapshot.cfg    the registrations have changed
                        20260131180000789-shutdown.cfg    the daemon is told to stop

They are for scripts that were written for TorchServe: the daemon itself reads its own snapshot (snapshot_file.py),
which knows more, and none of these unless `--ts-config` names it.
"""

import json
import logging
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from tsctl.daemon.config.config import Config
from tsctl.daemon.config.properties import read_properties
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.tables import SETTINGS

Models = dict[str, dict[str, dict[str, Any]]]
Kind = Literal["startup", "snapshot", "shutdown"]

MOST_FILES = 100  # the oldest go first

_OURS = re.compile(r"\d{17}-(startup|snapshot|shutdown)\.cfg")  # and TorchServe's; other files are left alone

_log = logging.getLogger("tsctl.daemon.models")


class TorchServeSnapshots:
    """The snapshots in one directory.

    Args:
        store: the model store: TorchServe starts from archives there only, and aborts for any other.
        properties: the keys of config.properties that the daemon was started with.
        wall: returns the time in seconds since the epoch.
    """

    def __init__(
        self,
        directory: Path,
        registry: Registry,
        store: Path | None,
        properties: Mapping[str, str],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._directory = directory
        self._registry = registry
        self._store = store
        self._properties = properties
        self._wall = wall
        self._failing = False
        self._models: Models | None = None  # of the last file
        self._last = 0  # its time, in milliseconds
        self._left_out: set[tuple[str, str]] = set()

    def changed(self, unsettled: Iterable[ModelVersion] = ()) -> None:
        """Write a snapshot, if it differs from the last one.

        Args:
            unsettled: registrations that may still fail; they are not written.
        """
        models = self._states(unsettled)
        if models != self._models:
            self._write("snapshot", models)

    def write(self, kind: Kind, unsettled: Iterable[ModelVersion] = ()) -> None:
        """Write what is registered; a failure is one line in the log."""
        self._write(kind, self._states(unsettled))

    def _write(self, kind: Kind, models: Models) -> None:
        # The newest file has the latest name, though the clock goes back, or two changes are of one millisecond.
        self._last = max(int(self._wall() * 1000), self._last + 1)
        name = f"{datetime.fromtimestamp(self._last // 1000):%Y%m%d%H%M%S}{self._last % 1000:03}-{kind}.cfg"
        draft = self._directory.parent / f".{name}"  # not in the directory, where TorchServe reads each file
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._remove_oldest()
            try:
                draft.touch(mode=0o600)  # a presigned URL opens something
                draft.write_text(text_of(models, self._properties, name, self._last), encoding="utf-8")
                draft.replace(self._directory / name)
            finally:
                draft.unlink(missing_ok=True)
        except OSError as error:
            if not self._failing:
                _log.warning("cannot write TorchServe's snapshot %s: %s", self._directory / name, error.strerror)
            self._failing = True
        else:
            self._failing, self._models = False, models

    def _states(self, unsettled: Iterable[ModelVersion]) -> Models:
        """Return the state of each version, as TorchServe names it, by model and version."""
        models: Models = {}
        hidden = set(unsettled)
        for model in self._registry:
            if model.lost or model.request.ephemeral or model in hidden:
                continue
            archive = name_in_store(model.source.url, self._store)
            if archive is not None:
                state = _state(model, archive, default=self._registry.is_default(model))
                models.setdefault(model.name, {})[model.version] = state
            elif (model.name, model.version) not in self._left_out:
                self._left_out.add((model.name, model.version))
                sentence = "%s/%s is not in TorchServe's snapshots, which name archives of the model store only: %s"
                _log.warning(sentence, model.name, model.version, model.source.url)
        return models

    def _remove_oldest(self) -> None:
        ours = sorted(file for file in self._directory.iterdir() if _OURS.fullmatch(file.name))
        for file in ours[: max(0, len(ours) - MOST_FILES + 1)]:
            file.unlink(missing_ok=True)


def name_in_store(url: str, store: Path | None) -> str | None:
    """Return an archive's name in the model store; None if it is not there, or has a comma, which lists have not."""
    if store is None or "," in url:
        return None
    path = store / url  # an absolute path stays as it is
    try:
        return str(path.relative_to(store)) if path.exists() else None
    except (OSError, ValueError):
        return None


def text_of(models: Models, properties: Mapping[str, str], name: str, created: int) -> str:
    """Return the file's text: the properties, and `model_snapshot` as TorchServe writes it.

    Args:
        created: milliseconds since the epoch.
    """
    import javaproperties  # here, because it takes 55 ms, which a daemon without these files saves

    document = {
        "name": name, "modelCount": sum(map(len, models.values())), "created": created, "models": models,
    }  # fmt: skip
    snapshot = {"model_snapshot": json.dumps(document, indent=2)}
    return javaproperties.dumps({**properties, **snapshot}, comments="Saving snapshot", timestamp=False)


def _state(model: ModelVersion, archive: str, *, default: bool) -> dict[str, Any]:
    settings = model.settings
    return {
        "defaultVersion": default,
        "marName": archive,
        "minWorkers": model.presence.least,
        "maxWorkers": model.presence.most,
        "batchSize": settings.batch_size,
        "maxBatchDelay": round(settings.max_delay * 1000),
        "responseTimeout": math.ceil(settings.response_timeout),
        "startupTimeout": math.ceil(settings.startup_timeout),
        "runtimeType": "python",
    }


_MODELS = ("load_models", "model_snapshot")


def properties_of(config: Config) -> dict[str, str]:
    """Return the keys of the config.properties that was read, without its models, and what was said instead.

    A flag or a variable of the environment wins over the file, as in the configuration itself.

    Raises:
        StartError: the file cannot be read any more.
    """
    written = {} if config.ts_config is None else read_properties(config.ts_config)
    for setting in SETTINGS:
        value = getattr(config, setting.name)
        if setting.key and value is not None and config.origins[setting.name] in ("flag", "environment"):
            written[setting.key] = _text(value)
    for key in _MODELS:
        written.pop(key, None)
    if config.model_store is not None:
        written["model_store"] = str(config.model_store)
    scheme = "http" if config.certificate_file is None else "https"
    for key in ("inference_address", "management_address", "metrics_address"):
        address = getattr(config, key)
        written.pop(key, None)
        if address is not None and address.lower() != "none":
            written[key] = address if "://" in address else f"{scheme}://{address}"
    return written


def _text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return str(math.ceil(value))  # TorchServe reads whole numbers
        case tuple():
            return ",".join(value)
        case re.Pattern():
            return str(value.pattern)
    return str(value)
