"""Builders of plain values, which do not matter unless a test says so."""

from pathlib import Path
from typing import Any

from tsctl.daemon.config.config import Config, resolve
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.marfile import parse_manifest
from tsctl.daemon.models.request import Source
from tsctl.daemon.models.request_path import Resources
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.cores import Placement
from tsctl.daemon.workers.engine import Engine, WorkerSpec


def make_spec(**changes: Any) -> WorkerSpec:
    values: dict[str, Any] = {
        "model_name": "m",
        "model_version": "1.0",
        "model_dir": Path("/nowhere"),
        "handler": "base_handler",
        "manifest": {},
        "batch_size": 1,
        "startup_timeout": 120.0,
        "response_timeout": 120.0,
    }
    return WorkerSpec(**values | changes)


def make_settings(**changes: Any) -> ModelSettings:
    values: dict[str, Any] = {
        "batch_size": 1,
        "max_delay": 0.1,
        "policy": "fixed",
        "workers": 1,
        "max_workers": 1,
        "response_timeout": 120.0,
        "startup_timeout": 120.0,
        "queue_jobs": 100,
        "queue_bytes": 1_000_000,
    }
    return ModelSettings(**values | changes)


def make_model(
    engine: Engine,
    clock: Clock,
    *,
    name: str = "m",
    version: str = "1.0",
    cores: int = 4,
    placement: Placement | None = None,
    **settings: Any,
) -> ModelVersion:
    """Make a model without workers; `settings` are those of `ModelSettings`."""
    manifest = parse_manifest({"model": {"modelName": name, "modelVersion": version, "handler": "base_handler"}})
    source = Source(f"{name}.mar", Path("/nowhere"), None, manifest, {})
    resources = Resources(engine=engine, clock=clock, cores=cores, placement=placement)
    return ModelVersion(source, make_settings(**settings), resources)


def make_config(directory: Path, **flags: str) -> Config:
    """Make a configuration whose state is in `directory`; `flags` are texts, as on the command line."""
    return resolve({"state_dir": str(directory / "state"), "socket": str(directory / "s")} | flags, {})
