"""Models whose workers run on a Ray cluster: `engine: ray`, and the resources of a worker there."""

from importlib.util import find_spec

from tsctl.daemon.config.config import Config
from tsctl.daemon.core.errors import BadRequest, InvalidModel
from tsctl.daemon.models.settings import ModelSettings
from tsctl.handlers.ray.messages import ActorOptions
from tsctl.handlers.wire import Mode

RAY = "ray"


def check_cluster(settings: ModelSettings, config: Config) -> None:
    """Check that this daemon has a cluster, if the settings ask for one.

    Raises:
        BadRequest: the daemon has none, or the package ray is missing.
    """
    if settings.engine != RAY:
        return
    if config.ray_address is None:
        raise BadRequest("engine is ray, but this daemon has no Ray cluster: start it with `--ray-address HOST:PORT`.")
    if find_spec(RAY) is None:
        raise BadRequest(
            "engine is ray, but the package ray is not installed: `pip install 'tsctl[ray]'`, in the same version as on"
            " the cluster."
        )


def actor_options_of(settings: ModelSettings, mode: Mode, *, in_place: bool, environment: bool) -> ActorOptions | None:
    """Return what a worker takes of its node; None for workers on this machine.

    Args:
        in_place: the model is not from an archive.
        environment: the model has a Python environment of its own.

    Raises:
        InvalidModel: the settings ask for something that workers on nodes do not have.
    """
    if settings.engine != RAY:
        return None
    refused = {
        "a directory or a file, which may change while it is served: pack it with `tsctl archive`": in_place,
        "requirements of its own: install them on the nodes, and start the daemon without `--install-requirements`":
            environment,
        "`continuousBatching` or `asyncCommunication`: remove it, or run the model on this machine": mode != "batch",
        "`sequenceBatching`: remove it, or run the model on this machine": settings.sequences,
        "`parallelType`: remove it, or run the model on this machine": bool(settings.parallel_type),
        "`maxMemory`: reserve memory by `ray: {resources: …}`, or run the model on this machine":
            settings.max_memory is not None,
        "`cpus`, which are this machine's: name `num_cpus` in `ray:`": bool(settings.cpus),
        "`deviceIds`, which are this machine's: name `num_gpus` in `ray:`": bool(settings.device_ids),
    }  # fmt: skip
    for what, asked in refused.items():
        if asked:
            raise InvalidModel(f"Workers on a Ray cluster do not take {what}.")
    return ActorOptions(**(settings.ray or {}))
