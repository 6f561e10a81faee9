"""Workers on a Ray cluster: ordinary workers to the pool, whose processes a bridge starts (handlers/ray).

bridge    a source of processes, as templates are
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.model_settings.kinds import MOST, Choice, Document
from tsctl.daemon.model_settings.row import ModelSetting
from tsctl.daemon.setting_values import Setting, grouped

if TYPE_CHECKING:
    from tsctl.daemon.config.config import Config
    from tsctl.daemon.core.clock import Clock
    from tsctl.daemon.extensions.ray.bridge import RayEngine
    from tsctl.daemon.models.version import ModelVersion

RAY = "ray"  # of the setting `engine`

RAY_OPTIONS = (
    "a mapping of `num_cpus`, `num_gpus` (numbers), `resources` (names with numbers), `placement` (SPREAD or PACK)"
    " and `labels` (names with texts)"
)


def are_ray_options(value: Any) -> bool:
    """Return whether a value has the form of `RAY_OPTIONS`."""
    if not isinstance(value, dict):
        return False
    checks: dict[str, Callable[[Any], bool]] = {
        "num_cpus": _is_amount,
        "num_gpus": _is_amount,
        "resources": lambda each: _is_mapping_of(each, _is_amount),
        "placement": lambda each: each in ("SPREAD", "PACK"),
        "labels": lambda each: _is_mapping_of(each, lambda text: isinstance(text, str)),
    }
    return all(name in checks and checks[name](each) for name, each in value.items())


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MOST


def _is_mapping_of(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) and fits(each) for name, each in value.items())


def parse_cluster(text: str) -> str:
    """Parse the address of a Ray cluster: `HOST:PORT` of its head, or `auto` for this machine's own."""
    if text.startswith("ray://"):
        raise ValueError(
            f"`{text}` is an address for Ray's clients; the daemon's machine must be a node of the cluster, with"
            " `ray start --address HOST:PORT --num-cpus 0`: then name HOST:PORT here"
        )
    if text != "auto" and not re.fullmatch(r"[^/\s]+:\d{1,5}", text):
        raise ValueError(f"`{text}` is neither HOST:PORT of a Ray head nor `auto`")
    return text


class RayExtension(Extension):
    name = "ray"
    needs = "engine"
    settings = grouped(
        "Workers and handlers",
        Setting(
            "ray_address", None, parse_cluster, "ADDRESS",
            "The Ray cluster of models with `engine: ray`: HOST:PORT of its head, or `auto`; needs tsctl[ray].",
        ),
    )  # fmt: skip
    model_settings = (
        ModelSetting(
            name="engine", kind=Choice(("local", RAY)), label="engine", group="Workers",
            help="Where the workers run: on this machine, or on the nodes of the daemon's Ray cluster"
            " (`--ray-address`).",
            yaml="engine", rest="engine", flag="--engine",
            default="local",
            why="The setting is fixed when a worker starts; a change takes new workers: `tsctl register --replace`.",
        ),
        ModelSetting(
            name="ray", kind=Document(RAY_OPTIONS, are_ray_options), label="Ray actors",
            help="What a worker takes of its node (`num_cpus`, `num_gpus`, `resources`), and which: `placement`,"
            " `labels`.",
            yaml="ray",
            why="Only the archive can set this, because its handler decides what a worker needs.",
        ),
    )  # fmt: skip

    def install(self, kernel: Kernel) -> Service:
        return RayService(kernel.config, kernel.clock, kernel.spare)


class RayService(Service):
    """The service; a daemon without a cluster has it, too, and refuses versions that ask for one.

    Args:
        spare: as in `Kernel`.
    """

    def __init__(self, config: "Config", clock: "Clock", spare: Callable[[int], None]) -> None:
        self._config, self._clock, self._spare = config, clock, spare
        self._engine: RayEngine | None = None

    def follow(self, model: "ModelVersion") -> None:
        settings, spec = model.settings, model.pool.spec
        if settings.engine != RAY or spec.engine is not None:
            return
        from tsctl.daemon.extensions.ray import bridge  # only now: most daemons have no such version

        address = bridge.check_cluster(self._config)
        options = bridge.actor_options_of(settings, spec)
        threads = spec.chosen_threads or max(1, int(options.num_cpus))
        if self._engine is None:
            self._engine = bridge.engine_at(address, self._config, self._clock, self._spare)
        model.pool.spec = replace(spec, engine=self._engine, own=options, devices=(), chosen_threads=threads)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
