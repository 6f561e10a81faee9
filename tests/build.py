"""Builders: what most tests need, with values that do not matter unless a test says so."""

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon.config.config import Config, resolve
from daemon.core.clock import Clock
from daemon.core.job import Batch, Job, Outcome, Param, Reply
from daemon.marfile import MANIFEST, parse_manifest
from daemon.models.settings import ModelSettings
from daemon.models.version import Model, Source
from daemon.workers.engine import Engine, Exit, LoadFailure, Worker, WorkerSpec


@dataclass
class Client:
    """Sends jobs and keeps the answers, in the order they came."""

    replies: list[tuple[str, Reply]] = field(default_factory=list)

    def job(self, name: str, body: bytes = b"", arrived: float = 0.0, **further: Any) -> Job:
        """Make a job; `further` are those of `Job`."""
        params = [Param("body", "", body)]
        return Job(name, params, [], arrived, lambda reply: self.replies.append((name, reply)), **further)

    @property
    def answered(self) -> list[str]:
        return [name for name, _ in self.replies]

    @property
    def statuses(self) -> dict[str, int]:
        return {name: reply.status for name, reply in self.replies}


class FakeLife:
    """A worker's process (workers/processes/process.py) that writes down why it is killed."""

    pid = 7
    running = True
    group = ""
    died_of_sigkill = False

    def __init__(self, spec: Any, protocol: Any, templates: Any, loop: Any, clock: Any, over: Any, arena: Any) -> None:
        self.over = over
        self.killed: list[str] = []

    def kill(self, because: str) -> None:
        self.killed.append(because)

    def socket_closed(self) -> None:
        """Do nothing: the process may have ended."""


@dataclass
class WorkerLog:
    """Writes down what an engine tells of its workers."""

    events: list[str] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    exits: list[Exit] = field(default_factory=list)

    def loaded(self, worker: Worker) -> None:
        self.events.append("loaded")

    def load_failed(self, worker: Worker, failure: LoadFailure) -> None:
        self.events.append(f"load failed: {failure.error}")

    def ended(self, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float) -> None:
        self.events.append(f"ended {batch.id} after {seconds:g}")
        self.outcomes.extend(outcomes)

    def streamed(self, worker: Worker, job: Job, piece: Reply) -> None:
        self.events.append(f"streamed {piece.body!r}")

    def lost(self, worker: Worker) -> None:
        self.events.append("lost")

    def exited(self, worker: Worker, how: Exit) -> None:
        self.events.append(f"exited: {how.reason}")
        self.exits.append(how)


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
    engine: Engine, clock: Clock, *, name: str = "m", version: str = "1.0", cores: int = 4, **settings: Any
) -> Model:
    """Make a model without workers; `settings` are those of `ModelSettings`."""
    manifest = parse_manifest({"model": {"modelName": name, "modelVersion": version, "handler": "base_handler"}})
    source = Source(f"{name}.mar", Path("/nowhere"), None, manifest, {})
    return Model(source, make_settings(**settings), engine, clock, cores=cores)


def make_config(directory: Path, **flags: str) -> Config:
    """Make a configuration whose state is in `directory`; `flags` are texts, as on the command line."""
    return resolve({"state_dir": str(directory / "state"), "socket": str(directory / "s")} | flags, {})


def manifest_document(name: str = "m", version: str = "1.0", **model: Any) -> dict[str, Any]:
    model = {"modelName": name, "modelVersion": version, "handler": "handler.py"} | model
    return {"runtime": "python", "model": model}


def model_files(name: str = "m", version: str = "1.0", **model: Any) -> dict[str, bytes]:
    """Make the files of an archive that can be registered; `model` changes its manifest."""
    document = json.dumps(manifest_document(name, version, **model)).encode()
    return {MANIFEST: document, "handler.py": b"def handle(data, context): return data\n"}


def write_files(directory: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    return directory


def write_mar(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)  # without the time: an archive is named by its bytes
    return path
