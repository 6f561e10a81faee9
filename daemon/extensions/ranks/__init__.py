"""Models that several processes or GPUs run together: `parallelType`, `parallelLevel` and `torchrun`, as in TorchServe.

parallel   how the settings spread a model

The core knows that a worker may be a group of processes, or have several GPUs (`WorkerSpec.group`, `gpus_each`), as it
measures, ends and replaces them together. What the processes of a group do is the worker's: handlers/process/ranks.
"""

from typing import TYPE_CHECKING, Any

from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.model_settings.kinds import Choice, Document, Integer
from tsctl.daemon.model_settings.row import OF_HANDLER, ModelSetting

if TYPE_CHECKING:
    from tsctl.daemon.models.settings import ModelSettings
    from tsctl.daemon.workers.engine import WorkerSpec

PROCESSES, THREADS, NODES = "nproc-per-node", "OMP_NUMBER_THREADS", "nnodes"  # of `torchrun`


class ParallelType(Choice):
    """One of a few words, in any case; an empty text or `none` for none."""

    def check(self, value: str) -> None:
        if value:
            super().check(value)

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(self.what)
        word = value.strip().lower()
        return "" if word == "none" else super().read(word)


def _is_torchrun(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    numbers = [value[key] for key in (PROCESSES, NODES, THREADS) if key in value]
    return all(type(each) is int and each >= 1 for each in numbers)


class RanksExtension(Extension):
    name = "ranks"
    needs = "parallel_type"
    model_settings = (
        ModelSetting(
            name="parallel_type", kind=ParallelType(("tp", "pp", "pptp", "custom")), label="parallel type",
            help="How several processes or GPUs run the model: tp, pp and pptp start processes, custom leaves that to"
            " it.",
            yaml="parallelType", default="", why=OF_HANDLER,
        ),
        ModelSetting(
            name="parallel_level", kind=Integer(0), label="parallel level",
            help="GPUs of each worker of a model with a parallel type; `torchrun` names the number where it is set.",
            yaml="parallelLevel", default=0, only_with="parallelType", why=OF_HANDLER,
        ),
        ModelSetting(
            name="torchrun",
            kind=Document("a mapping, such as `nproc-per-node: 2`, of whole numbers from 1", _is_torchrun),
            label="processes of a worker",
            help="The processes of each worker of a model with a parallel type, and their threads.",
            yaml="torchrun", only_with="parallelType", members=(PROCESSES, THREADS, NODES), why=OF_HANDLER,
        ),
    )  # fmt: skip

    def specify(self, settings: "ModelSettings", spec: "WorkerSpec") -> "WorkerSpec":
        from tsctl.daemon.extensions.ranks.parallel import spread

        return spread(settings, spec)

    def install(self, kernel: Kernel) -> Service:
        del kernel
        from tsctl.daemon.extensions.ranks.parallel import RanksService

        return RanksService()
