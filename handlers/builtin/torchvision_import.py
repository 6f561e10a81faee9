"""torchvision, imported without torch.compile: 0.1 s instead of 1.1 s.

torchvision/ops/roi_align.py imports `torch._dynamo`, and with that sympy and half of torch.compile, for the function
`is_compile_supported`, which only detection models on a GPU call. While torchvision is imported here, stand-ins take
places of the package and of its module. The function of the stand-in imports the real module when first called. When
anybody imports the real one, its function takes the place of ours, so that torch.compile finds what it knows.

A torchvision that wants anything else of `torch._dynamo` gets the real modules, and takes as long as before.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

import torch  # noqa: F401 - before the stand-in for one of its packages

_PACKAGE, _MODULE = "torch._dynamo", "torch._dynamo.utils"
_FUNCTION = "is_compile_supported"


class _StandIn(ModuleType):
    """Stands in for a module until more than its known names are wanted.

    Args:
        known: the names that are there.
        leave: gives the name in `sys.modules` back.
    """

    def __init__(self, name: str, leave: Callable[[], None], **known: Any) -> None:
        super().__init__(name)
        vars(self).update(known, _leave=leave)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and (name != "__path__" or self.__name__ != _PACKAGE):
            raise AttributeError(name)
        self._leave()
        return getattr(importlib.import_module(self.__name__), name)


def is_compile_supported(device_type: Any) -> Any:
    """Ask the real function."""
    return getattr(importlib.import_module(_MODULE), _FUNCTION)(device_type)


class _UtilsFinder:
    """Finds `torch._dynamo.utils` as always, and then has the real function put into the modules that have ours."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                _put_back(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _put_back(real: ModuleType) -> None:
    for name, module in sys.modules.copy().items():
        if name.startswith("torchvision.") and vars(module).get(_FUNCTION) is is_compile_supported:
            setattr(module, _FUNCTION, getattr(real, _FUNCTION))


def _import() -> None:
    """Import torchvision, without `torch._dynamo` if both are not imported yet."""
    if _PACKAGE in sys.modules or "torchvision" in sys.modules:
        return

    def leave() -> None:
        if isinstance(sys.modules.get(_PACKAGE), _StandIn):
            del sys.modules[_PACKAGE], sys.modules[_MODULE]

    sys.modules[_PACKAGE] = _StandIn(_PACKAGE, leave)
    sys.modules[_MODULE] = _StandIn(_MODULE, leave, **{_FUNCTION: is_compile_supported})
    try:
        importlib.import_module("torchvision")
    finally:
        leave()
    if _MODULE in sys.modules:
        _put_back(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _UtilsFinder())


_import()

from torchvision import transforms as transforms  # noqa: E402
