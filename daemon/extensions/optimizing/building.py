"""The trial of a version, as known when the version is built."""

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from importlib.util import find_spec

from tsctl.daemon.config.config import Config
from tsctl.daemon.core.machine.cgroups import has_quota
from tsctl.daemon.extensions.optimizing import NEVER
from tsctl.daemon.extensions.optimizing.record import TrialFacts, TrialStore
from tsctl.daemon.extensions.optimizing.sets import has_defaults, is_asked, is_tried, lossy_of, sets_to_try
from tsctl.daemon.extensions.optimizing.trial import Trial
from tsctl.daemon.models.registering.source import Source
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.cores import chosen_threads, threads_for, usable_cores
from tsctl.daemon.workers.engine import WorkerSpec
from tsctl.handlers.names import ONNX_PACKAGES
from tsctl.handlers.optimize.checks.archive import archive_of
from tsctl.handlers.optimize.checks.processor import read_processor
from tsctl.handlers.optimize.compiler import find_compiler


def trial_for(model: ModelVersion, config: Config, store: TrialStore, threads: int = 0) -> Trial | None:
    """Return the trial of a version, as known now; None if it is not one that is tried.

    Args:
        threads: of each worker; 0 for those that the version starts with.
    """
    spec = model.pool.spec
    threads = threads or threads_of(model.settings, spec, os.environ)
    return first_trial(model.source, model.settings, spec, config.auto_optimize, store, threads)


def first_trial(
    source: Source, settings: ModelSettings, spec: WorkerSpec, wish: str, store: TrialStore, threads: int
) -> Trial | None:
    """Return the trial of a version, as known now; None if it is not one that is tried.

    Args:
        settings: with the default batch size.
        spec: of the version's workers.
        wish: the daemon's setting `auto_optimize`.
        threads: of each worker.
    """
    handler, asked = source.manifest.handler, is_asked(settings.optimize)
    if not is_tried(settings.optimize, handler, wish):
        return None
    lossy = lossy_of(source.document)
    sets = sets_to_try(
        defaults=has_defaults(handler), compiler=find_compiler() is not None,
        onnxruntime=all(map(find_spec, ONNX_PACKAGES)), lossy=lossy,
    )  # fmt: skip
    try:
        if obstacle := obstacle_to(spec, wish, sets=bool(sets), quota=not asked and has_quota()):
            return Trial(None, asked=asked, obstacle=obstacle)
        facts = TrialFacts(
            archive=archive_of(source.directory), handler=handler, python=str(source.python or ""),
            processor=str(read_processor()), torch=version_of("torch"), batch_size=settings.batch_size,
            threads=threads, lossy=lossy,
        )  # fmt: skip
    except PackageNotFoundError:
        return Trial(None, asked=asked, obstacle="torch is not installed beside the daemon")
    except OSError as error:
        return Trial(None, asked=asked, obstacle=f"a file cannot be read: {error}")
    return Trial(store.read(facts), sets, asked=asked)


def obstacle_to(spec: WorkerSpec, wish: str, *, sets: bool, quota: bool) -> str:
    """Return why no trial of a version is made; empty if one may be.

    Args:
        sets: whether there is a set to try.
        quota: whether nobody asked, and a trial would take CPU time from requests, however low its priority.
    """
    if wish == NEVER:
        return "the daemon's `auto_optimize` is `never`"
    if spec.devices:
        return "compiled code is not kept for GPUs; `tsctl optimize` measures the sets there"
    if spec.engine is not None or spec.mode != "batch" or spec.group is not None:
        return "only versions that run whole batches, in workers of one process on this machine, are tried"
    if not sets:
        return "there is neither a C++ compiler nor ONNX Runtime here, and `optimizeTolerance` allows only rounding"
    if quota:
        return "a cgroup limits the daemon's CPU time, of which a trial would take some; `optimize: auto` asks for it"
    return ""


def threads_of(settings: ModelSettings, spec: WorkerSpec, environment: Mapping[str, str]) -> int:
    """Return the threads of each worker that a version starts with, as its pool will compute them."""
    cores = usable_cores()
    cores = min(cores, len(settings.cpus) or cores)
    chosen = spec.chosen_threads or chosen_threads(environment)
    return threads_for(cores, max(1, settings.workers), chosen)
