"""Build a model from a directory: its manifest, its Python environment, its configuration."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tsctl.daemon import paths
from tsctl.daemon.config.config import Config
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.logs import ModelLogs
from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.marfile import Manifest, parse_manifest
from tsctl.daemon.models.archives.manifest import (
    bare_manifest,
    check_served,
    misspelt,
    read_manifest,
    read_yaml,
    unused_devices,
    without_effect,
)
from tsctl.daemon.models.archives.opening import Progress
from tsctl.daemon.models.archives.requirements import Environments
from tsctl.daemon.models.archives.unpack import ArchiveMark
from tsctl.daemon.models.persistence.snapshot import SnapshotEntry
from tsctl.daemon.models.registering.spec import has_setting
from tsctl.daemon.models.request import Registration, Source
from tsctl.daemon.models.request_path import Resources
from tsctl.daemon.models.request_watcher import ParameterHeader
from tsctl.daemon.models.settings import Overrides, merge
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.cores import Placement, chosen_threads, usable_cores
from tsctl.daemon.workers.engine import Engine
from tsctl.handlers.wire import Declared

_log = logging.getLogger("tsctl.daemon.models")


class ArchiveTexts(NamedTuple):
    """The files of a model that the daemon itself reads: its manifest, and `model-config.yaml` (empty without one)."""

    manifest: Manifest
    document: Mapping[str, Any]


class ModelFactory:
    """Makes models; registers and starts nothing.

    Attributes:
        following: called with each model that was made, and after its changes (`Service.follow`). Each is with the
            setting that a model must have got, other than by default, or with an empty text.
        logs: of the output of workers.
        parameter_headers: as of each model.
    """

    def __init__(
        self,
        config: Config,
        engine: Engine,
        clock: Clock,
        logs: ModelLogs,
        recurring: Recurring,
        gpus: Sequence[str] = (),
    ) -> None:
        """`gpus`: the names for CUDA of the daemon's GPUs."""
        self._config = config
        self._engine = engine
        self._clock = clock
        self.logs = logs
        self._recurring = recurring
        self.following: Sequence[tuple[str, Callable[[ModelVersion], None]]] = ()
        self.parameter_headers: Mapping[str, ParameterHeader] = {}
        self._placement = Placement(names=gpus)
        self._environments = Environments(paths.environments_dir(config.state_dir), allowed=config.install_requirements)

    async def read(self, request: Registration, directory: Path) -> ArchiveTexts:
        """Do as `read_texts`, in a thread."""
        return await asyncio.to_thread(self.read_texts, request, directory)

    def read_texts(self, request: Registration, directory: Path) -> ArchiveTexts:
        """Read an archive's manifest, or infer that of a file served in place, and the configuration. Blocks.

        Args:
            request: its values win over the manifest's.

        Raises:
            InvalidModel: a file is missing, wrong or too large, or the manifest names one that is not there.
        """
        manifest = read_manifest(
            directory,
            model_name=request.model_name,
            handler=request.handler,
            runtime=request.runtime,
            default_handler=self._config.default_handler,
            inferred=bare_manifest(directory, request.url, request.model_version),
        )
        return ArchiveTexts(manifest, read_yaml(directory, manifest.config_file))

    async def install(self, manifest: Manifest, directory: Path, progress: Progress) -> None:
        """Make the Python environment that the archive asks for, if the operator allows environments.

        Raises:
            RequirementsFailed: pip could not install the requirements.
        """
        if manifest.requirements_file is not None:
            await self._environments.install(directory, manifest, partial(progress, "installing"))

    def build(
        self,
        request: Registration,
        texts: ArchiveTexts,
        directory: Path,
        unpacked: Path | None,
        mark: ArchiveMark | None,
        *,
        listed: bool = False,
        restored: bool = False,
        declared: Declared | None = None,
        notes: Sequence[str] = (),
    ) -> ModelVersion:
        """Make a model from a directory.

        Args:
            unpacked, mark, listed: as in `Source`.
            restored: whether an earlier run had registered the model.
            declared, notes: as in `ModelVersion`, if an earlier run knew them.

        Raises:
            BadRequest: the request asks for an impossible value.
            InvalidModel: the configuration is wrong, or asks for an unsupported feature.
            RequirementsFailed: the model's Python environment is missing.
        """
        manifest, document = texts
        name, version = manifest.model_name, manifest.model_version
        block = self._config.models_block.get(name, {}).get(version, {})
        check_served(document, manifest.config_file)
        for key in without_effect(document):
            _log.warning("%s: `%s` in %s has no effect here", name, key, manifest.config_file)
        # As in TorchServe, a listed model without a number of workers gets one for each core.
        overrides = request.overrides.changed({"fallback_workers": usable_cores()}) if listed else request.overrides
        settings = merge(overrides, document, self._config, block, gpus=self._placement.gpus)
        for sentence in (*misspelt(document), *unused_devices(document, settings.devices)):
            _log.warning("%s: %s", name, sentence)
        source = Source(
            request.url, directory, unpacked, manifest, document, mark=mark, listed=listed,
            python=None if manifest.requirements_file is None else self._environments.python(directory, manifest),
        )  # fmt: skip
        return self._followed(
            ModelVersion(
                source,
                settings,
                Resources(
                    engine=self._engine,
                    clock=self._clock,
                    cores=usable_cores(),
                    chosen_threads=chosen_threads(os.environ),
                    placement=self._placement,
                    log=self.logs.open(name, version),
                    recurring=self._recurring,
                ),
                at_startup=listed or restored,
                request=request,
                declared=declared,
                notes=notes,
            )
        )

    def make_lost(self, entry: SnapshotEntry, unpacked: Path | None, reason: str) -> ModelVersion:
        """Make a model in the state FAILED whose files are gone, for the given reason."""
        request = entry.request
        values = {"modelName": entry.name, "modelVersion": entry.version, "handler": request.handler or "unknown"}
        source = Source(
            request.url, unpacked or Path(request.url), unpacked, parse_manifest({"model": values}), {},
            mark=entry.archive, listed=entry.listed,
        )  # fmt: skip
        settings = merge(Overrides(), {}, self._config)
        resources = Resources(engine=self._engine, clock=self._clock, cores=1, recurring=self._recurring)
        model = ModelVersion(source, settings, resources, at_startup=True, request=request)
        model.lost = True
        self._followed(model)
        model.lose(reason)
        return model

    def _followed(self, model: ModelVersion) -> ModelVersion:
        model.parameter_headers = self.parameter_headers
        met: set[str] = set()  # a service goes on following a version whose setting is the default again

        def tell_services() -> None:
            for needs, follow in self.following:
                if needs in met or has_setting(model.settings, needs):
                    met.add(needs)
                    follow(model)

        model.tell_services = tell_services
        tell_services()
        return model
