"""The names of `__main__` in a pickle: a script that trained a model saved its classes under that name.

There the script was `__main__`, and here the worker's program is. So a name that this program lacks is looked for in
the model's modules.
"""

import sys
from pathlib import Path


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
