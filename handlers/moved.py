"""Former names of this package's modules, and their users.

* A running daemon of an earlier version names them to new processes: a template imports the modules that it is told.
* Handlers of users import them, and get the same modules (`install`).
* A running worker or template of an earlier version has modules under their former names, and imports others late:
  from a file of the former name (defaults/, pipeline.py, streaming.py, micro_batching.py), which leads to the new
  module (`lead`). The imports of that one must find the modules of the process, not second copies with other classes
  (`adopt`).
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

# former name → new name
MOVED: dict[str, str] = {
    "handlers.compat": "handlers.runtime.compat",
    "handlers.connection": "handlers.process.connection",
    "handlers.context": "handlers.sdk.context",
    "handlers.defaults": "handlers.builtin",
    "handlers.defaults.base": "handlers.builtin.base",
    "handlers.defaults.compiling": "handlers.builtin.support.compiling",
    "handlers.defaults.image_classifier": "handlers.builtin.image_classifier",
    "handlers.defaults.image_segmenter": "handlers.builtin.image_segmenter",
    "handlers.defaults.insights": "handlers.builtin.support.insights",
    "handlers.defaults.labels": "handlers.builtin.support.labels",
    "handlers.defaults.modelfile": "handlers.builtin.support.modelfile",
    "handlers.defaults.object_detector": "handlers.builtin.object_detector",
    "handlers.defaults.onnx": "handlers.builtin.support.onnx",
    "handlers.defaults.profiling": "handlers.builtin.support.profiling",
    "handlers.defaults.text": "handlers.builtin.text",
    "handlers.defaults.text_classifier": "handlers.builtin.text_classifier",
    "handlers.defaults.vision": "handlers.builtin.vision",
    "handlers.errors": "handlers.sdk.errors",
    "handlers.excerpt": "handlers.requests.excerpt",
    "handlers.forking": "handlers.process.forking",
    "handlers.isolation": "handlers.runtime.isolation",
    "handlers.kinds": "handlers.requests.kinds",
    "handlers.loader": "handlers.sdk.loader",
    "handlers.memory": "handlers.process.memory",
    "handlers.metrics": "handlers.sdk.metrics",
    "handlers.micro_batching": "handlers.torchserve.micro_batching",
    "handlers.optimize.decoders": "handlers.builtin.support.decoders",
    "handlers.optimize.images": "handlers.builtin.fast_images",
    "handlers.optimize.plain": "handlers.sdk.plain_model",
    "handlers.perbatch": "handlers.sdk.per_batch",
    "handlers.pieces": "handlers.process.pieces",
    "handlers.pipeline": "handlers.process.pipeline",
    "handlers.rows": "handlers.requests.rows",
    "handlers.running": "handlers.process.schedule",
    "handlers.runtime": "handlers.runtime.runtime",
    "handlers.streaming": "handlers.sdk.streaming",
    "handlers.tally": "handlers.sdk.pending_metrics",
    "handlers.text": "handlers.builtin.support",
    "handlers.text.cleaning": "handlers.builtin.support.cleaning",
    "handlers.text.tokens": "handlers.builtin.support.tokens",
    "handlers.threads": "handlers.process.threads",
    "handlers.timer": "handlers.sdk.timer",
    "handlers.warmup": "handlers.runtime.warmup",
}


class _MovedFinder(MetaPathFinder, Loader):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the table does not depend on a path
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if MOVED.get(fullname, fullname).startswith(fullname):  # runtime.py is a package now
            return None
        # A package without files of its own: what is within is looked up here, too.
        return ModuleSpec(fullname, self, is_package=any(old.startswith(f"{fullname}.") for old in MOVED))

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:  # noqa: ARG002 - an ordinary one
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Replace this module by the one of the new name."""
        lead(module.__name__)


def install() -> None:
    """Make the former names importable."""
    if not any(isinstance(finder, _MovedFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _MovedFinder())  # before the files: they would be second copies


def lead(old: str) -> None:
    """Replace a module that is being imported by a former name by the one of the new name."""
    door = sys.modules.pop(old)  # not to be adopted
    try:
        sys.modules[old] = importlib.import_module(MOVED[old])
    finally:
        sys.modules.setdefault(old, door)


def adopt() -> None:
    """Register modules that this process has under former names under their new names, too."""
    for old, new in MOVED.items():
        module = sys.modules.get(old)
        if module is not None and not hasattr(module, "__path__"):
            sys.modules.setdefault(new, module)
