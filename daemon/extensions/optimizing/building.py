"""The trial of a version, as known when the version is built."""

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from importlib.util import find_spec
from typing import Any

from tsctl.daemon.config.config import Config
from tsctl.daemon.core.machine.cgroups import has_quota
from tsctl.daemon.extensions.optimizing import NEVER
from tsctl.daemon.extensions.optimizing.record import TrialFacts, TrialStore
from tsctl.daemon.extensions.optimizing.trial import Trial
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.cores import chosen_threads, threads_for, usable_cores
from tsctl.daemon.workers.engine import WorkerSpec
from tsctl.handlers.names import (
    AUTO,
    COMPILE,
    LOSSY,
    NO_OPTIMIZATION,
    ONNX_PACKAGES,
    ONNX_RUNTIME,
    usual_optimizations,
)  # fmt: skip
from tsctl.handlers.optimize.checks.archive import archive_of
from tsctl.handlers.optimize.checks.processor import read_processor
from tsctl.handlers.optimize.compiler import find_compiler


def lossy_of(document: Mapping[str, Any]) -> dict[str, float]:
    """Return the lossy optimisations that `model-config.yaml` tolerates, each with its largest drift."""
    named = document.get("optimizeTolerance")
    if not isinstance(named, dict):
        return {}
    return {name: float(named[name]) for name in LOSSY if type(named.get(name)) in (int, float) and named[name] > 0}


def sets_to_try(
    *, defaults: bool, compiler: bool, onnxruntime: bool = False, lossy: Collection[str]
) -> list[tuple[str, ...]]:
    """The versions that are tried, and the sets of optimisations that a trial compares.

        `optimize: auto`                                          tried, once it has answered
        nothing said, and the handler has defaults of its own     tried, once it has had traffic: `auto_optimize`
        names, `none`, or no names (`optimize: []`)               never

    Optimisations beyond rounding are tried where `optimizeTolerance` names them, within their tolerances.

    Return the sets, by their names beside the handler's defaults; the first is the defaults alone.

    Args:
        defaults: the handler has some: then the plain model may be the faster one.
        onnxruntime: what exports a model and runs it is installed.

    Returns:
        Nothing if there is no set beside the defaults.
    """
    named: list[tuple[str, ...]] = [(COMPILE,)] if compiler else []
    if onnxruntime:
        named.append((ONNX_RUNTIME,))
    if "bf16" in lossy:
        named += [("bf16",), ("bf16", COMPILE)] if compiler else [("bf16",)]
    if "int8" in lossy:
        named.append(("int8",))
    if "scaled_decode" in lossy:  # reading is another stage, and goes with every model
        named += [("scaled_decode",), *(("scaled_decode", *names) for names in named)]
    plain = [(NO_OPTIMIZATION,)] if defaults else []
    return [(), *plain, *named] if plain or named else []


def trial_for(model: ModelVersion, config: Config, store: TrialStore, threads: int = 0) -> Trial:
    """Return the trial of a version that is tried, as known now.

    Args:
        threads: of each worker; 0 for those that the version starts with.
    """
    source, settings, spec, wish = model.source, model.settings, model.pool.spec, config.auto_optimize
    handler = source.manifest.handler
    asked, lossy = settings.optimize == (AUTO,), lossy_of(source.document)
    onnxruntime = all(map(find_spec, ONNX_PACKAGES))
    sets = sets_to_try(
        defaults=bool(usual_optimizations(handler)),
        compiler=find_compiler() is not None,
        onnxruntime=onnxruntime,
        lossy=lossy,
    )
    try:
        if obstacle := obstacle_to(spec, wish, sets=bool(sets), quota=not asked and has_quota()):
            return Trial(None, asked=asked, obstacle=obstacle)
        facts = TrialFacts(
            archive=archive_of(source.directory), handler=handler, python=str(source.python or ""),
            processor=str(read_processor()), torch=version_of("torch"), batch_size=settings.batch_size,
            threads=threads or threads_of(settings, spec, os.environ), lossy=lossy,
            onnxruntime=_onnx_version() if onnxruntime else "",
        )  # fmt: skip
    except PackageNotFoundError:
        return Trial(None, asked=asked, obstacle="torch is not installed beside the daemon")
    except OSError as error:
        return Trial(None, asked=asked, obstacle=f"a file cannot be read: {error}")
    return Trial(store.read(facts), sets, asked=asked)


def _onnx_version() -> str:
    for package in (ONNX_RUNTIME, "onnxruntime-gpu", "onnxruntime-openvino"):  # packages of one module
        with suppress(PackageNotFoundError):
            return version_of(package)
    return "unknown"


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
