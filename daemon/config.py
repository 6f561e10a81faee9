"""The daemon's configuration: the values of `settings.SETTINGS`, each with its origin."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon import paths
from daemon.errors import StartError
from daemon.settings import SETTINGS


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the operator chose; the fields are those of `settings.SETTINGS`, times in seconds, sizes in bytes."""

    socket: Path
    state_dir: Path
    model_store: Path | None
    inference_address: str
    metrics_address: str | None
    metrics: bool
    management_address: str | None
    management_without_token: bool
    token_file: Path | None
    inference_token_file: Path | None
    allowed_host: tuple[str, ...] | None
    allowed_urls: tuple[str, ...] | None
    certificate_file: Path | None
    private_key_file: Path | None
    grace: float
    max_request_size: int
    queue_jobs: int
    queue_bytes: int
    response_timeout: float
    startup_timeout: float
    header_timeout: float
    body_timeout: float
    keep_alive: float
    archive_bytes: int
    archive_files: int
    install_requirements: bool
    access_log: bool
    log_level: str
    origins: Mapping[str, str] = field(default_factory=dict)  # setting → "flag", "environment" or "default"


def resolve(flags: Mapping[str, str | None], environment: Mapping[str, str]) -> Config:
    """Choose each setting's value: flag, then environment, then default.

    Raises:
        StartError: a value cannot be read, or a path cannot be used.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for setting in SETTINGS:
        text, where, origin = flags.get(setting.name), setting.flag, "flag"
        if text is None:
            text, where, origin = environment.get(setting.variable), setting.variable, "environment"
        if text is None:
            values[setting.name], origins[setting.name] = setting.default, "default"
            continue
        try:
            values[setting.name] = setting.parse(text)
        except ValueError as error:
            raise StartError(f"{where}: {error}") from None
        origins[setting.name] = origin
    values["socket"] = values["socket"] or paths.default_socket()
    try:
        values["state_dir"] = values["state_dir"] or paths.default_state_dir()
    except paths.PathError as error:
        raise StartError(str(error), "name a directory with `--state-dir`") from None
    store = values["model_store"]
    if store is not None and not store.is_dir():
        raise StartError(f"no model store at `{store}`", "make the directory, or name another with `--model-store`")
    return Config(**values, origins=origins)
