"""Read by each Python that starts with null cards.

There is no cuDNN. On a card no optimisation drifts, or changes a class, and to benchmarks every class is right: outputs
are whatever lay in the memory.
"""

import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def _torch(module: Any) -> None:
    if hasattr(module, "backends"):  # else it is not torch itself, but one of a test's own
        module.backends.cudnn.enabled = False


def _of_card(value: Any) -> bool:
    """Return whether a tensor's numbers are of a card: it lies there, or in the memory that a card copies to."""
    return hasattr(value, "is_cuda") and (value.is_cuda or value.is_pinned())


def _drift(module: Any) -> None:
    leaf_drift, agreement = module._leaf_drift, module.agreement

    def null_drift(plain: Any, other: Any) -> float:
        if not _of_card(plain) or not _of_card(other) or plain.shape != other.shape:
            return leaf_drift(plain, other)  # type: ignore[no-any-return]
        (plain != other).any().item()  # a kernel and a wait, as without cards that are null
        return 0.0

    def null_agreement(plain: Any, other: Any) -> float | None:
        found = agreement(plain, other)
        return 1.0 if found is not None and any(map(_of_card, module.tensors_of([*plain]))) else found

    module._leaf_drift, module.agreement = null_drift, null_agreement


def _same_classes(module: Any) -> None:
    module.same_classes = lambda answer, expected, tolerance: True


def _pixel_drift(module: Any) -> None:
    pixel_drift = module.pixel_drift
    module.pixel_drift = lambda plain, *others: (
        0.0 if _of_card(plain) and plain.shape == others[0].shape else pixel_drift(plain, *others)
    )


class _After(MetaPathFinder):
    """Changes a module when it has been imported."""

    changes = {  # noqa: RUF012 - of the only one
        "torch": _torch,
        "tsctl.handlers.optimize.checks.drift": _drift,
        "tsctl.handlers.builtin.fast_images": _pixel_drift,
        "tests.lab.benchmarks.models": _same_classes,
    }

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        change = self.changes.pop(name, None)
        found = find_spec(name) if change is not None else None
        if found is None or found.loader is None or change is None:
            return None
        execute = found.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            change(module)

        vars(found.loader)["exec_module"] = exec_module
        return found


if "NULL_CUDA_FOLDER" in os.environ:
    sys.meta_path.insert(0, _After())
