"""`optimize: auto`: the fastest set of optimisations is found by a trial while the version serves, and remembered.

    a version is built ──▶ building     is there an obstacle to a trial, and is a result remembered (record)
    each second        ──▶ trials       for each version: waits_for (due), one trial at a time
    the trial          ──▶ program      `measuring` with the lowest priority: sets, sample
    its result         ──▶ choice       the set to serve with; written down, and then
                           registrar    loads the version again beside itself, as the same version

trial       draws the trial of one version, and keeps its state
documents   what became of each optimisation, and of the trial, as JSON
measuring   a program of its own: sets of optimisations in throw-away workers; `tsctl optimize` runs it, too

The optimisations themselves are the worker's: handlers/optimize.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tsctl.daemon.declarations import EventRow, Operations
from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.model_settings.kinds import ValueKind
from tsctl.daemon.model_settings.row import ModelSetting
from tsctl.daemon.setting_values import Setting, grouped
from tsctl.handlers.names import ALLOWED_OPTIMIZATIONS, parse_optimizations

if TYPE_CHECKING:
    from pathlib import Path

    from tsctl.daemon.config.config import Config
    from tsctl.daemon.models.version import ModelVersion

BUILT_IN, ASKED, NEVER = WISHES = ("built-in", "asked", "never")
VARIABLE = "OPTIMIZE_TRIALS_DIR"  # in the environment of workers: the directory of outcomes


class Optimizations(ValueKind):
    """Names of `tsctl.handlers.names.OPTIMIZATIONS`, or `auto`: a list, or text with commas; shown as a list."""

    stored = tuple[str, ...]
    metavar = "NAMES"

    @property
    def what(self) -> str:
        return ALLOWED_OPTIMIZATIONS

    def read(self, value: Any) -> tuple[str, ...]:
        return parse_optimizations(value)

    def show(self, value: tuple[str, ...] | None) -> list[str] | None:
        return None if value is None else list(value)


def parse_wish(text: str) -> str:
    """Parse a value of `auto_optimize`; raise ValueError with a sentence that quotes it."""
    word = text.strip().lower()
    if word not in WISHES:
        raise ValueError(f"`{text}` is not a choice of versions to optimize ({', '.join(WISHES)})")
    return word


def trials_dir(state_dir: "Path") -> "Path":
    """Return the directory of outcomes: which optimisations are worth having, by archive and machine."""
    return state_dir / "trials"


class OptimizingExtension(Extension):
    name = "optimizing"
    settings = grouped(
        "Workers and handlers",
        Setting(
            "auto_optimize", BUILT_IN, parse_wish, "CHOICE",
            "Models for which the fastest optimizations are found by a trial: built-in (image classifiers and"
            " segmenters that say nothing of `optimize`, after 20 minutes of work; and `optimize: auto`), asked (only"
            " the latter) or never.",
        ),
    )  # fmt: skip
    model_settings = (
        ModelSetting(
            name="optimize",
            group="Workers",
            kind=Optimizations(),
            label="optimizations",
            help="Optimizations of the model, or `auto` for the fastest, found by a trial; the handler's own by "
            "default.",
            yaml="optimize",
            rest="optimize",
            flag="--optimize",
            worker="optimize",
            why="The setting is fixed when a worker starts; a change takes new workers: `tsctl register --replace`.",
        ),
    )
    events = (
        EventRow("trial-started", "info", "sets of optimizations are compared, in a process of the lowest priority"),
        EventRow("trial-ended", "info", "a trial has found the fastest set, or that none is faster, or was broken off"),
        EventRow(
            "trial-failed", "warning", "a trial, or what it has chosen, is of no use; the version serves as before"
        ),
        EventRow("optimized", "info", "workers with the set that a trial has chosen have taken over"),
    )

    def configure(
        self, values: dict[str, Any], keys: Mapping[str, str], environment: Mapping[str, str]
    ) -> Sequence[str]:
        del keys, environment
        values["worker_variables"][VARIABLE] = str(trials_dir(values["state_dir"]))
        return ()

    def describe(self, model: "ModelVersion", config: "Config") -> Mapping[str, Any]:
        from tsctl.daemon.extensions.optimizing.building import trial_for
        from tsctl.daemon.extensions.optimizing.documents import optimized_of, trial_of
        from tsctl.daemon.extensions.optimizing.record import store_of
        from tsctl.daemon.extensions.optimizing.trials import is_tried

        tried = is_tried(model.settings.optimize, model.source.manifest.handler, config.auto_optimize)
        trial = trial_for(model, config, store_of(config.state_dir)) if tried else None
        return {"optimize": optimized_of(model), "trial": trial_of(trial)}

    def operations(self, *, own: bool) -> Operations:
        from tsctl.daemon.extensions.registrations.document import OPERATIONS

        return OPERATIONS if own else {}  # for `tsctl optimize --apply`

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.optimizing.trials import OptimizingService

        return OptimizingService(kernel.registry, kernel.registrar, kernel.config, kernel.clock)
