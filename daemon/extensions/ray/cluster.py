"""Models whose workers run on a Ray cluster: `engine: ray`, and the resources of a worker there."""

from importlib.util import find_spec

from tsctl.daemon.config.config import Config
from tsctl.daemon.core.errors import BadRequest, InvalidModel
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.workers.engine import WorkerSpec
from tsctl.handlers.ray.messages import ActorOptions

RAY = "ray"
# The settings that workers on nodes do not have, and what to do about each; other extensions' are among them.
_REFUSED = {
    "sequences": "`sequenceBatching`: remove it, or run the model on this machine",
    "parallel_type": "`parallelType`: remove it, or run the model on this machine",
    "max_memory": "`maxMemory`: reserve memory by `ray: {resources: …}`, or run the model on this machine",
    "cpus": "`cpus`, which are this machine's: name `num_cpus` in `ray:`",
    "device_ids": "`deviceIds`, which are this machine's: name `num_gpus` in `ray:`",
}


def check_cluster(config: Config) -> str:
    """Return the address of the daemon's cluster.

    Raises:
        BadRequest: the daemon has none, or the package ray is missing.
    """
    if config.ray_address is None:
        raise BadRequest("engine is ray, but this daemon has no Ray cluster: start it with `--ray-address HOST:PORT`.")
    if find_spec(RAY) is None:
        raise BadRequest(
            "engine is ray, but the package ray is not installed: `pip install 'tsctl[ray]'`, in the same version as on"
            " the cluster."
        )
    return str(config.ray_address)


def actor_options_of(settings: ModelSettings, spec: WorkerSpec) -> ActorOptions:
    """Return what a worker takes of its node.

    Raises:
        InvalidModel: the settings ask for something that workers on nodes do not have.
    """
    refused = {
        "a directory or a file, which may change while it is served: pack it with `tsctl archive`": spec.in_place,
        "requirements of its own: install them on the nodes, and start the daemon without `--install-requirements`":
            spec.python is not None,
        "`continuousBatching` or `asyncCommunication`: remove it, or run the model on this machine":
            spec.mode != "batch",
    } | {what: bool(vars(settings).get(name)) for name, what in _REFUSED.items()}  # fmt: skip
    for what, asked in refused.items():
        if asked:
            raise InvalidModel(f"Workers on a Ray cluster do not take {what}.")
    return ActorOptions(**(settings.ray or {}))
