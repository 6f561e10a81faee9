"""A function or class of this process, written down for the daemon's workers.

    what can be imported again      by its module's name and file, with this process's sys.path
    anything else                   by cloudpickle, as a file beside the module: a function of a notebook, of
                                    `__main__`, or within another function

The workers load a small module that finds the one or reads the other. A worker is a process of its own: a function of
`__main__` runs there without running the script again.
"""

import inspect
import io
import linecache
import pickle
import sys
from collections import ChainMap
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any, get_type_hints

from tsctl.python.errors import ServeFailed

MODULE = "tsctl_served"  # of the generated file; `handle` is TorchServe's name of an entry point
_FUNCTION = "handle = found\n"
# A class of this module, which the loader looks for.
_CLASS = "class Served(found):\n    pass\n\n\nServed.__name__ = Served.__qualname__ = found.__name__\n"

_IMPORTED = '''"""Made by tsctl.serve: {qualname} of {file}."""

import importlib
import importlib.util
import sys

sys.path[:] = dict.fromkeys([*{path!r}, *sys.path])  # what has a name of the program's is found before others


def _module():
    try:
        module = importlib.import_module({module!r})
        if getattr(module, "__file__", None) == {file!r}:
            return module
    except ModuleNotFoundError as error:
        if not ({module!r} + ".").startswith(error.name + "."):
            raise
    spec = importlib.util.spec_from_file_location({module!r}, {file!r})
    module = importlib.util.module_from_spec(spec)
    sys.modules[{module!r}] = module
    spec.loader.exec_module(module)
    return module


found = _module()
for _name in {names!r}:
    found = getattr(found, _name)
'''

_PICKLED = '''"""Made by tsctl.serve: {qualname}, read from the file beside this one."""

import linecache
import pathlib
import pickle
import sys

sys.path[:] = dict.fromkeys([*{path!r}, *sys.path])  # what has a name of the program's is found before others
with open(pathlib.Path(__file__).with_suffix(".pickle"), "rb") as _file:
    _sources = pickle.load(_file)
    linecache.cache.update({{name: (len(text), None, text.splitlines(True), name) for name, text in _sources.items()}})
    found, _hints = pickle.load(_file)
if _hints is not None:
    found.__annotations__ = _hints
'''


def write(target: Callable[..., Any], folder: Path) -> str:
    """Write the module of a function or class into a folder of this user's; return the module's file name.

    Raises:
        ServeFailed: the target is of another kind, or cannot be pickled.
    """
    if not (inspect.isfunction(target) or inspect.isclass(target)):
        raise ServeFailed(f"`{target!r}` cannot be served: {_instead(target)}")
    module = _imported(target) or _pickled(target, folder)
    (folder / f"{MODULE}.py").write_text(module + "\n\n" + (_CLASS if inspect.isclass(target) else _FUNCTION))
    return f"{MODULE}.py"


def _instead(target: object) -> str:
    """Return what can be served in place of an object that is neither a function nor a class."""
    kinds = {f"{each.__module__}.{each.__qualname__}" for each in type(target).__mro__}
    if "torch.nn.modules.module.Module" in kinds:
        return "pass a function that calls it: `def predict(x: torch.Tensor) -> torch.Tensor: return model(x)`"
    if inspect.ismethod(target) or callable(getattr(target, "predict", None)) or callable(target):
        return "pass a function that calls it, or its class, of which each worker makes one"
    return "pass a function, a class, or the path of a handler, an archive or a model"


def name_of(target: Callable[..., Any]) -> str:
    """Return a model's name for a function or class: its own, as far as a model may be called so."""
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in target.__name__.lower())
    return name.replace("-", " ").strip().replace(" ", "-") or "model"


def _imported(target: Callable[..., Any]) -> str | None:
    """Return the text of a module that imports the target; None if the target cannot be imported."""
    module = sys.modules.get(target.__module__)
    file = getattr(module, "__file__", None)
    if module is None or target.__module__ == "__main__" or file is None or not file.endswith(".py"):
        return None
    names = target.__qualname__.split(".")
    found: Any = module
    for name in names:
        found = getattr(found, name, None)
    if found is not target:
        return None  # within a function, or replaced by a decorator
    file = str(Path(file).absolute())
    return _IMPORTED.format(
        qualname=target.__qualname__, module=target.__module__, file=file, names=names, path=_search_path()
    )


def _pickled(target: Callable[..., Any], folder: Path) -> str:
    """Pickle the target into the folder; return the text of a module that reads it."""
    try:
        import cloudpickle
    except ModuleNotFoundError:
        raise ServeFailed(
            f"`{target.__qualname__}` cannot be imported by a worker, and sending it needs cloudpickle:"
            " `pip install 'tsctl[notebook]'`, or move it into a module"
        ) from None
    try:
        pickled, sources = _with_places(cloudpickle, (target, _hints(target)))
    except Exception as error:  # noqa: BLE001 - whatever the objects that the target refers to raise
        raise ServeFailed(f"`{target.__qualname__}` cannot be pickled: {error}; move it into a module") from None
    (folder / f"{MODULE}.pickle").write_bytes(pickle.dumps(sources) + pickled)
    return _PICKLED.format(qualname=target.__qualname__, path=_search_path())


def _with_places(cloudpickle: Any, value: Any) -> tuple[bytes, dict[str, str]]:
    """Pickle a value whose functions keep their places, which tracebacks and the loader read; return the sources, too.

    cloudpickle writes `<dynamic-code>` for the file of a function. The sources are those of files that no worker could
    read, such as the cells of a notebook: file → text.
    """
    files: set[str] = set()

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # of a package without types
        pass

    reduce_code = Pickler.dispatch_table[CodeType]

    def reduce(code: CodeType) -> Any:
        made, arguments = reduce_code(code)
        files.add(code.co_filename)
        return made, tuple(code.co_filename if each == "<dynamic-code>" else each for each in arguments)

    Pickler.dispatch_table = ChainMap({CodeType: reduce}, Pickler.dispatch_table)
    buffer = io.BytesIO()
    Pickler(buffer).dump(value)
    texts = {name: "".join(linecache.getlines(name)) for name in sorted(files) if not Path(name).is_file()}
    return buffer.getvalue(), {name: text for name, text in texts.items() if text}


def _hints(target: Callable[..., Any]) -> dict[str, Any] | None:
    """Return a function's type hints as objects: names in strings mean nothing where its module is not.

    None where they cannot be resolved, and for classes.
    """
    if inspect.isclass(target):
        return None
    try:
        return get_type_hints(target, include_extras=True)
    except Exception:  # noqa: BLE001 - hints are any expressions
        return None


def _search_path() -> list[str]:
    return [str(Path(path or ".").absolute()) for path in sys.path]
