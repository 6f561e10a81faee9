"""How a model is spread over processes and GPUs.

    parallelType    processes of a worker             batches run in    GPUs of a worker
    tp, pptp        torchrun's nproc-per-node         all of them       one for each process
    pp              torchrun's nproc-per-node         the first         one for each process
    custom          one                               it                parallelLevel

Without a level, from `torchrun` or from `parallelLevel`, the type has no effect, as in TorchServe.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.extension import Service
from tsctl.daemon.extensions.ranks import NODES, PROCESSES, THREADS
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import WorkerSpec
from tsctl.handlers.wire import Ranks


class Parallel(NamedTuple):
    """How a model is spread.

    Attributes:
        kind: `parallelType`; empty for a model in one process, on one device.
        level: the processes of a worker, for `custom` its GPUs; 0 without a kind.
        ranks: the processes; None for one.
        threads: of each process; None for a share of the cores.
    """

    kind: str = ""
    level: int = 0
    ranks: Ranks | None = None
    threads: int | None = None

    @property
    def gpus(self) -> int:
        """The number of GPUs of a worker, if it uses any."""
        return self.level or 1


def parallel_of(settings: ModelSettings) -> Parallel:
    """Return how the settings spread a model.

    Raises:
        InvalidModel: they ask for several machines, or for more GPUs than the model may use, or contradict each other.
    """
    torchrun = settings.torchrun or {}
    kind, level = settings.parallel_type, torchrun.get(PROCESSES, settings.parallel_level)
    if not kind or not level:
        return Parallel()
    if torchrun.get(NODES, 1) != 1:
        raise InvalidModel(
            f"model-config.yaml: `{NODES}` of `torchrun` is {torchrun[NODES]}, but a worker's processes run on this"
            f" machine: remove it, and name their number as `{PROCESSES}`."
        )
    if settings.devices and len(settings.devices) < level:
        raise InvalidModel(
            f"model-config.yaml: a worker takes {level} GPUs, but the model may use {len(settings.devices)}:"
            f" lower `{'parallelLevel' if kind == 'custom' else PROCESSES}`, or add GPUs to `deviceIds`."
        )
    if kind == "custom":
        return Parallel(kind, level)
    if settings.asynchronous:
        raise InvalidModel(
            f"model-config.yaml: `asyncCommunication` is true, and `parallelType` is {kind}: rows that run on their own"
            " have no common order. With `parallelType: custom` the handler starts its processes itself."
        )
    if settings.isolate:
        raise InvalidModel(
            f"`isolate` is true, and `parallelType` is {kind}: processes that run a batch together cannot repeat a part"
            " of it. Remove `isolate`."
        )
    return Parallel(kind, level, Ranks(level, each=kind != "pp"), torchrun.get(THREADS))


def spread(settings: ModelSettings, spec: WorkerSpec) -> WorkerSpec:
    """Return the configuration of workers that are spread as the settings say.

    Raises:
        InvalidModel: as for `parallel_of`.
    """
    parallel = parallel_of(settings)
    if not parallel.kind:
        return spec
    spec = replace(spec, gpus_each=parallel.gpus, chosen_threads=parallel.threads or spec.chosen_threads)
    if parallel.ranks is None:
        return spec
    return replace(spec, group=parallel.ranks.count, told={**spec.told, "ranks": parallel.ranks}, isolate=False)


class RanksService(Service):
    """How models are spread, in their documents."""

    def fields(self, model: ModelVersion, view: VersionView) -> Mapping[str, Any]:
        if view is not VersionView.MEMBERS:
            return {}
        parallel = parallel_of(model.settings)
        return {"parallelType": parallel.kind, "parallelLevel": parallel.level} if parallel.kind else {}
