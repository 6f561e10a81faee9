"""TorchServe's import names: `from ts.torch_handler.base_handler import BaseHandler` works.

A table of module and names, served by a finder that comes first on `sys.meta_path`, so that ours
wins where TorchServe itself is installed too.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_STREAM = ("handlers.streaming", "send_intermediate_predict_response")

# ts module → {name in it: (our module, our name)}
TABLE: dict[str, dict[str, tuple[str, str]]] = {
    "ts": {},
    "ts.context": {
        "Context": ("handlers.context", "Context"),
        "RequestProcessor": ("handlers.context", "RequestProcessor"),
    },
    "ts.handler_utils": {},
    "ts.handler_utils.utils": {"send_intermediate_predict_response": _STREAM},
    "ts.metrics": {},
    "ts.metrics.dimension": {"Dimension": ("handlers.metrics", "Dimension")},
    "ts.metrics.metric_type_enum": {"MetricTypes": ("handlers.metrics", "MetricTypes")},
    "ts.protocol": {},
    "ts.protocol.otf_message_handler": {"send_intermediate_predict_response": _STREAM},
    "ts.torch_handler": {},
    "ts.torch_handler.base_handler": {"BaseHandler": ("handlers.defaults.base", "BaseHandler")},
    "ts.torch_handler.image_classifier": {
        "ImageClassifier": ("handlers.defaults.image_classifier", "ImageClassifier"),
    },
    "ts.torch_handler.vision_handler": {"VisionHandler": ("handlers.defaults.vision", "VisionHandler")},
    "ts.utils": {},
    "ts.utils.util": {
        "PredictionException": ("handlers.errors", "PredictionException"),
        "load_label_mapping": ("handlers.defaults.labels", "load_label_mapping"),
        "map_class_to_label": ("handlers.defaults.labels", "map_class_to_label"),
    },
}


class _Module(ModuleType):
    """A module of the table; its names are looked up when they are first used."""

    def __getattr__(self, name: str) -> object:
        try:
            module, attribute = TABLE[self.__name__][name]
        except KeyError:
            raise AttributeError(f"tsctl's `{self.__name__}` has no `{name}`") from None
        value: object = getattr(importlib.import_module(module), attribute)
        setattr(self, name, value)
        return value


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the table does not depend on a path
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname not in TABLE:
            return None
        return ModuleSpec(fullname, self, is_package=any(name.startswith(f"{fullname}.") for name in TABLE))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Everything is looked up on use."""


def install() -> None:
    """Put the table first on `sys.meta_path`."""
    sys.meta_path.insert(0, _Finder())
