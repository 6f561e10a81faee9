"""Resolve a handler string to an entry point.

The rules are TorchServe's (ts/model_loader.py): the module is a file of the archive, else a built-in handler, else any
importable module. A function of the given name (by default `handle`) is the entry point; else the module's one handler
class is. The first error is reported: a handler file that fails to import is not searched elsewhere.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from handlers.names import BUILT_IN, split_handler
from handlers.sdk.context import Context
from handlers.sdk.errors import HandlerError, UnreadablePayload


class EntryPoint:
    """The handler as called by the runtime.

    Attributes:
        instance: the handler object, None for a module function.
        handle: takes the rows and the context, returns one item for each row.
        own_handle: the handler defines its own `handle` method, or is a function.
    """

    def __init__(self, instance: Any, handle: Callable[[Any, Context], Any]) -> None:
        self.instance = instance
        self.handle = handle
        self.own_handle = not _handle_is_ours(instance)

    def prepare(self, data: list[Any]) -> dict[int, UnreadablePayload]:
        """Return the unreadable rows and the reasons, where `handle` is ours; see `BaseHandler.prepare`."""
        found: dict[int, UnreadablePayload] = {} if self.own_handle else self.instance.prepare(data)
        return found

    def initialize(self, context: Context) -> None:
        """Load the model. A module function is called once without data, as TorchServe does."""
        if self.instance is None:
            self.handle(None, context)
        else:
            self.instance.initialize(context)


def load_handler(handler: str, model_dir: Path) -> EntryPoint:
    """Find and import a handler; errors of the handler's code propagate.

    Args:
        handler: as in the manifest.
        model_dir: the archive's files; must be on `sys.path`.

    Raises:
        HandlerError: the module has no entry point.
    """
    name, function = split_handler(handler)
    file = model_dir / f"{name}.py"
    if file.is_file():
        module = import_file(file)
    elif name in BUILT_IN:
        module_name, class_name = BUILT_IN[name]
        return _instantiate(getattr(importlib.import_module(module_name), class_name))
    else:
        module = importlib.import_module(name)
    if hasattr(module, function):
        return EntryPoint(None, getattr(module, function))
    return _instantiate(_handler_class(module, function))


def import_file(file: Path) -> ModuleType:
    """Import a file under its own name, or under another if that name is taken, as for `copy.py`."""
    known = sys.modules.get(file.stem)
    if known is not None and getattr(known, "__file__", None) == str(file):
        return known  # the handler has imported its model file; a second copy would have other classes
    name = file.stem if file.stem not in sys.modules else f"_archive_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def classes_of(module: ModuleType) -> list[type]:
    """Return the classes that a module itself defines; a class with two names counts once."""
    found = dict.fromkeys(value for value in vars(module).values() if isinstance(value, type))
    return [value for value in found if value.__module__ == module.__name__]


def _handle_is_ours(instance: Any) -> bool:
    base, micro = sys.modules.get("handlers.builtin.base"), sys.modules.get("handlers.torchserve.micro_batching")
    if base is None or not isinstance(instance, base.BaseHandler):
        return False
    if type(instance).handle is not base.BaseHandler.handle:
        return False
    replaced = vars(instance).get("handle")
    return replaced is None or (micro is not None and isinstance(replaced, micro.MicroBatching))


def _handler_class(module: ModuleType, function: str) -> type:
    classes = classes_of(module)
    # TorchServe rejects a second class; we ignore helpers without `handle` and base classes of the handler.
    handlers = [each for each in classes if callable(getattr(each, "handle", None))]
    handlers = [each for each in handlers if not any(each in other.__mro__[1:] for other in handlers)]
    if len(handlers) == 1:
        return handlers[0]
    names = ", ".join(each.__name__ for each in handlers or classes) or "none"
    wanted = f"a function `{function}` or exactly one class with a method `handle`"
    raise HandlerError(f"{module.__name__}.py needs {wanted}; it has {names}")


def _instantiate(handler_class: type) -> EntryPoint:
    instance = handler_class()
    if not callable(getattr(instance, "initialize", None)):
        raise HandlerError(f"{handler_class.__name__} has no method `initialize`")
    return EntryPoint(instance, instance.handle)
