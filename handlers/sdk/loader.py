"""Resolve a handler string to an entry point.

The rules are TorchServe's (ts/model_loader.py): the module is a file of the archive, else a built-in handler, else any
importable module. A function of the given name (by default `handle`) is the entry point; else the module's one handler
class is. The first error is reported: a handler file that fails to import is not searched elsewhere.

Beside them, functions with type hints (handlers/typed): the one of the given name, the method `predict` or `handle` of
a class, or where there is none of these, a function `predict`.
"""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tsctl.handlers import wire
from tsctl.handlers.names import BUILT_IN, split_handler
from tsctl.handlers.sdk.built_in import declaration_of
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError, UnreadablePayload
from tsctl.handlers.sdk.loading_branch import passed_over

MakeTyped = Callable[[Callable[..., Any], Any], "EntryPoint | None"]


class EntryPoint:
    """The handler as called by the runtime.

    Attributes:
        instance: the handler object, None for a module function.
        handle: takes the rows and the context, returns one item for each row.
        own_handle: the handler defines its own `handle` method, or is a function.
        read: turns rows into the items of `data`; None: the dicts of TorchServe.
        declared: the inputs of a typed or built-in handler; None for any other.
        notes: sentences for the model's author.
    """

    def __init__(self, instance: Any, handle: Callable[[Any, Context], Any]) -> None:
        self.read: Callable[[Sequence[wire.Row]], list[Any]] | None = None
        self.declared: wire.Declared | None = None
        self.notes: list[str] = []
        self.instance = instance
        self.handle = handle
        self.own_handle = not _handle_is_ours(instance)

    def prepare(self, data: list[Any]) -> dict[int, UnreadablePayload]:
        """Return the unreadable rows and the reasons, where `handle` is ours; see `BaseHandler.prepare`."""
        found: dict[int, UnreadablePayload] = {} if self.own_handle else self.instance.prepare(data)
        return found

    def initialize(self, context: Context) -> None:
        """Load the model. A module function is called once without data, as TorchServe does.

        A function that fails on that call because it has no loading branch is ready; `notes` tells so. A coroutine
        function is not called: it could not load before there is an event loop.
        """
        if self.instance is not None:
            self.instance.initialize(context)
            return
        if inspect.iscoroutinefunction(self.handle):
            return
        try:
            self.handle(None, context)
        except (TypeError, AttributeError) as error:
            note = passed_over(self.handle, error)
            if not note:
                raise
            self.notes.append(note)

    def close(self) -> None:
        """End what the entry point runs between batches; by default nothing."""


def untyped(function: Callable[..., Any], instance: Any) -> EntryPoint | None:  # noqa: ARG001
    """Return None: no function is a typed one."""
    return None


def load_handler(handler: str, model_dir: Path, typed: MakeTyped = untyped) -> EntryPoint:
    """Find and import a handler; errors of the handler's code propagate.

    Args:
        handler: as in the manifest.
        model_dir: the archive's files; must be on `sys.path`.
        typed: makes the entry point of a function, or of a method and its object; None if it is not a typed one. Called
            only for functions that have type hints.

    Raises:
        HandlerError: the module has no entry point.
    """
    name, function = split_handler(handler)
    file = model_dir / f"{name}.py"
    if file.is_file():
        module = import_file(file)
    elif name in BUILT_IN:
        module_name, class_name = BUILT_IN[name]
        built_in = _instantiate(getattr(importlib.import_module(module_name), class_name))
        built_in.declared = declaration_of(name)
        return built_in
    else:
        module = importlib.import_module(name)
    found = getattr(module, function, None)
    if isinstance(found, type):
        return _instantiate(found, typed)
    if found is not None:
        return (typed(found, None) if _has_hints(found) else None) or EntryPoint(None, found)
    handler_class = _handler_class(module, function)
    if handler_class is not None:
        return _instantiate(handler_class, typed)
    predict = getattr(module, "predict", None)
    if callable(predict) and not isinstance(predict, type):
        entry = typed(predict, None)
        if entry is not None:
            return entry
        raise HandlerError(f"`predict` of {module.__name__}.py takes TorchServe's arguments; call it `handle`")
    names = ", ".join(each.__name__ for each in classes_of(module)) or "none"
    wanted = f"a function `{function}` or exactly one class with a method `handle` or `predict`"
    raise HandlerError(f"{module.__name__}.py needs {wanted}; it has {names}")


def _has_hints(function: Callable[..., Any]) -> bool:
    """Return whether a parameter other than the context has a type hint; without importing anything.

    False for our own functions, such as the `handle` that a subclass of BaseHandler inherits.
    """
    if str(getattr(function, "__module__", "")).startswith("tsctl.handlers."):
        return False
    try:
        return bool(getattr(function, "__annotations__", {}).keys() - {"return", "context"})
    except Exception:  # noqa: BLE001 - from Python 3.14 on, hints are evaluated here
        return True


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
    base, micro = (
        sys.modules.get("tsctl.handlers.builtin.base"),
        sys.modules.get("tsctl.handlers.torchserve.micro_batching"),
    )
    if base is None or not isinstance(instance, base.BaseHandler):
        return False
    if type(instance).handle is not base.BaseHandler.handle:
        return False
    replaced = vars(instance).get("handle")
    return replaced is None or (micro is not None and isinstance(replaced, micro.MicroBatching))


def _handler_class(module: ModuleType, function: str) -> type | None:
    """Return the module's one handler class; None if no class has a method `handle` or `predict`.

    Raises:
        HandlerError: several classes have one.
    """
    classes = classes_of(module)
    for method in ("handle", "predict"):
        # TorchServe rejects a second class; we ignore helpers without the method and base classes of the handler.
        handlers = [each for each in classes if callable(getattr(each, method, None))]
        handlers = [each for each in handlers if not any(each in other.__mro__[1:] for other in handlers)]
        if len(handlers) == 1:
            return handlers[0]
        if handlers:
            names = ", ".join(each.__name__ for each in handlers)
            wanted = f"a function `{function}` or exactly one class with a method `{method}`"
            raise HandlerError(f"{module.__name__}.py needs {wanted}; it has {names}")
    return None


def _instantiate(handler_class: type, typed: MakeTyped = untyped) -> EntryPoint:
    instance: Any = handler_class()
    for name in ("handle", "predict"):
        method = getattr(instance, name, None)
        if callable(method) and (name == "predict" or _has_hints(method)):
            entry = typed(method, instance)
            if entry is not None:
                return entry
        if method is not None:
            break  # a `predict` beside a `handle` is a part of it
    if not callable(getattr(instance, "initialize", None)):
        raise HandlerError(f"{handler_class.__name__} has no method `initialize`")
    return EntryPoint(instance, instance.handle)
