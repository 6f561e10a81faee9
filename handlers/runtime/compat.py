"""Names that a model's code expects to find: TorchServe's modules, and what a pickle looks for in `__main__`.

`from ts.torch_handler.base_handler import BaseHandler` works.
A table of modules and names (handlers/torchserve/table.py), served by a finder placed first on `sys.meta_path`, so that
our modules win over an installed TorchServe.

A script that trained a model saved its classes under the name `__main__`, which it was. Here the worker's program is.
So a name that this program lacks is looked for in the model's modules.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from tsctl.handlers.torchserve.table import ABSENT, TABLE


class _Module(ModuleType):
    """A module of the table; its names are resolved on first use."""

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
        if fullname in TABLE:
            return ModuleSpec(fullname, self, is_package=any(name.startswith(f"{fullname}.") for name in TABLE))
        for absent, why in ABSENT.items():
            if f"{fullname}.".startswith(f"{absent}."):
                # Not a ModuleNotFoundError: `from ts.torch_handler import dali_handler` would drop the message.
                raise ImportError(f"`{fullname}` {why}", name=fullname)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Name what `import *` takes; the names are resolved on first use."""
        module.__all__ = list(TABLE[module.__name__])  # type: ignore[attr-defined]


def install() -> None:
    """Put the table first on `sys.meta_path`."""
    sys.meta_path.insert(0, _Finder())


def spec_elsewhere(name: str) -> ModuleSpec | None:
    """Return the spec of a module of the table in a program that is no worker, such as the tests of a handler.

    For `torchserve/tsctl-torchserve.pth`, whose finder comes last: where there is another package `ts`, its modules are
    its own, and those that it lacks are not ours.
    """
    if name != "ts" and not isinstance(sys.modules.get("ts"), _Module):
        return None
    return _Finder().find_spec(name)


def look_in(model_dir: Path) -> None:
    """Look for the names that `__main__` lacks in the modules of a directory that are imported."""
    sys.modules["__main__"].__getattr__ = _Lookup(model_dir)  # type: ignore[method-assign]  # PEP 562


class _Lookup:
    def __init__(self, model_dir: Path) -> None:
        self._folder = str(model_dir)

    def __call__(self, name: str) -> object:
        """Return what a module of the model defines under a name; raise AttributeError if none does, or several do."""
        found = {} if name.startswith("__") else {id(each): each for each in self._defined(name)}
        if len(found) != 1:
            raise AttributeError(f"module `__main__` has no attribute {name!r}")
        return next(iter(found.values()))

    def _defined(self, name: str) -> list[object]:
        modules = [each for each in list(sys.modules.values()) if self._is_of_model(getattr(each, "__file__", None))]
        values = [vars(each)[name] for each in modules if name in vars(each)]
        names = {each.__name__ for each in modules}
        return [each for each in values if getattr(each, "__module__", "") in names]

    def _is_of_model(self, file: object) -> bool:
        return isinstance(file, str) and Path(file).is_relative_to(self._folder)
