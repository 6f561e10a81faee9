"""Resolve a handler string to an entry point.

The rules are TorchServe's (ts/model_loader.py): the module is a file of the archive, else a built-in handler, else any
importable module. A function of the given name (by default `handle`) is the entry point; else the module's one handler
class is. The first error is reported: a handler file that fails to import is not searched elsewhere.

Beside them, functions with type hints (handlers/typed): the one of the given name, the module's own function `predict`,
or the method `predict` or `handle` of a class. A function of the module wins over a class with a `predict`, which it
may use. Where two are alike, a file is refused with the names of both; an archive, whose author may count on
TorchServe's rules, is served by these. A note says which of two is served.
"""

import ast
import importlib
import importlib.util
import inspect
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from tsctl.handlers import wire
from tsctl.handlers.names import BUILT_IN, split_handler
from tsctl.handlers.sdk.built_in import declaration_inherited, declaration_of
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError, UnreadablePayload
from tsctl.handlers.sdk.places import place_of

MakeTyped = Callable[[Callable[..., Any], Any], "EntryPoint | None"]

_CALLS = "`def predict(x: torch.Tensor) -> torch.Tensor: return {}(x)`"

MANIFEST = "MAR-INF/MANIFEST.json"  # in the directory of an archive


class EntryPoint:
    """The handler as called by the runtime.

    Attributes:
        instance: the handler object, None for a module function.
        handle: takes the rows and the context, returns one item for each row.
        own_handle: the handler defines its own `handle` method, or is a function.
        checks: `prepare` may find unreadable rows.
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
        self.checks = not self.own_handle and prepare_is_ours(instance)

    def prepare(self, data: list[Any]) -> dict[int, UnreadablePayload]:
        """Return the unreadable rows and the reasons; see `BaseHandler.prepare`."""
        found: dict[int, UnreadablePayload] = self.instance.prepare(data)
        return found

    def initialize(self, context: Context) -> None:
        """Load the model. A module function is called once without data, as TorchServe does.

        A function that fails on that call because it has no loading branch is ready; `notes` tells so. Coroutines are
        for runtime/coroutines.py.
        """
        if self.instance is not None:
            self.instance.initialize(context)
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
    place = file.name if file.is_file() else name
    found = getattr(module, function, None)
    if isinstance(found, type):
        return _instantiate(found, typed)
    choice = _Choice(module, place, strict=":" not in handler and not (model_dir / MANIFEST).is_file())
    if found is not None:
        choice.prefer("handle", [] if ":" in handler else choice.predict(typed))
        entry = typed(found, None) if _has_hints(found) else None
        if entry is None:
            check_form(found, function, place)
        return choice.noted(entry or EntryPoint(None, found))
    handlers = choice.classes("handle", function)
    predict: Any = getattr(module, "predict", None)
    wins = choice.owns(predict) and _has_hints(predict)
    others = choice.classes("predict", function, beside=handlers, among=wins)
    if handlers:
        choice.prefer(handlers[0].__name__, choice.predict(typed) + [each.__name__ for each in others])
        return choice.noted(_instantiate(handlers[0], typed))
    if others and not wins:
        return _instantiate(others[0], typed)
    if callable(predict) and not isinstance(predict, type):
        check_no_network(predict, "predict", place)
        choice.pass_over("predict", [each.__name__ for each in others])
        entry = typed(predict, None)
        if entry is not None:
            return choice.noted(entry)
        raise HandlerError(f"{place_of(predict)}`predict` takes TorchServe's arguments; call it `handle`")
    names = ", ".join(each.__name__ for each in classes_of(module)) or "none"
    functions = "`predict` or `handle`" if function == "handle" else f"`{function}`"
    wanted = f"a function {functions}, or exactly one class with a method `predict` or `handle`"
    network = next((name for name, value in vars(module).items() if _is_network(value, module)), "")
    called = "model" if isinstance(getattr(module, network, None), type) else network
    way = f". A network is called by a handler: {_CALLS.format(called)}" if network else ""
    raise HandlerError(f"{module.__name__}.py needs {wanted}; it has {names}{way}")


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


def check_no_network(found: object, name: str, place: str) -> None:
    """Raise HandlerError if a function is to be served, and its name is that of a network."""
    if _is_network(found):
        raise HandlerError(
            f"{place}: `{name}` is a torch.nn.Module, {type(found).__name__}, and no function. Give it another name,"
            f" and call it: {_CALLS.format('model')}"
        )


def check_form(found: Any, name: str, place: str) -> None:
    """Check that TorchServe's two arguments fit a function or bound method without type hints.

    Raises:
        HandlerError: it is no function, or takes others.
    """
    check_no_network(found, name, place)
    if not callable(found):
        raise HandlerError(f"{place}: `{name}` is {type(found).__name__}, and no function")
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return  # of a class that is written in C
    try:
        signature.bind(None, None)
    except TypeError:
        takes, name = ", ".join(signature.parameters), getattr(found, "__name__", name)
        first = next(iter(signature.parameters), "data")
        raise HandlerError(
            f"{place_of(found) or f'{place}: '}`{name}({takes})` has no type hints, so it is called as TorchServe calls"
            f" it, with two arguments: `{name}(data, context)`. To get a request's values, say what each is:"
            f" `{name}({first}: str)`"
        ) from None


def check_no_arguments(handler_class: type) -> None:
    """Raise HandlerError if a handler's class cannot be made without arguments."""
    try:
        signature = inspect.signature(handler_class)
    except (TypeError, ValueError):
        return
    try:
        signature.bind()
    except TypeError:
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        missing = [each.name for each in signature.parameters.values() if each.default is each.empty]
        names = ", ".join(f"`{name}`" for name in missing if signature.parameters[name].kind not in kinds)
        raise HandlerError(
            f"{place_of(handler_class)}a worker makes {handler_class.__name__} without arguments, and its `__init__`"
            f" takes {names}: give each a default, or load what it is in `initialize(self, context)`"
        ) from None


def _is_network(value: object, module: ModuleType | None = None) -> bool:
    """Return whether a value is a network, or one of the module's own classes of networks."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if isinstance(value, type):
        return module is not None and issubclass(value, torch.nn.Module) and value.__module__ == module.__name__
    return isinstance(value, torch.nn.Module)


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


def prepare_is_ours(instance: Any) -> bool:
    """Return whether `prepare` is the one of ours; a user's own method of that name is no more than that."""
    return bool(type(instance).prepare.__module__.startswith("tsctl."))


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


class _Choice:
    """The choice of what a module serves, and what it does not.

    Args:
        place: of the module, as people name it: `handler.py`.
        strict: refuse two that are alike, instead of following TorchServe's rules.
    """

    def __init__(self, module: ModuleType, place: str, *, strict: bool) -> None:
        self._module, self._place, self._strict = module, place, strict
        self._note = ""

    def owns(self, value: object) -> bool:
        """Return whether a value is a function that the module itself defines."""
        own = getattr(value, "__module__", "") == self._module.__name__
        return own and callable(value) and not isinstance(value, type)

    def predict(self, typed: MakeTyped) -> list[str]:
        """Return `predict` if the module defines a function of this name that could be served."""
        found: Any = getattr(self._module, "predict", None)
        try:
            return ["predict"] if self.owns(found) and _has_hints(found) and typed(found, None) is not None else []
        except HandlerError:
            return []  # a helper, whose arguments no request could fill

    def classes(self, method: str, function: str, beside: Sequence[type] = (), *, among: bool = False) -> list[type]:
        """Return the module's one class with a method, or none.

        Args:
            among: return all of several, because none of them is served.
            beside: handlers of the module: of other classes only those count that could be served, too.

        Raises:
            HandlerError: several classes have one.
        """
        # TorchServe rejects a second class; we ignore helpers without the method and base classes of the handler.
        found = [each for each in classes_of(self._module) if callable(getattr(each, method, None))]
        found = [each for each in found if not any(each in other.__mro__[1:] for other in found)]
        if beside:  # a `predict` of a handler is a part of it, and that of a network is the handler's to call
            bases = {base for each in beside for base in each.__mro__}
            found = [each for each in found if each not in bases and _could_serve(getattr(each, method), each)]
        elif len(found) > 1 and not among:
            names = self._named([each.__name__ for each in found])
            wanted = f"a function `{function}` or exactly one class with a method `{method}`"
            raise HandlerError(
                f"{self._place} needs {wanted}; it has {names}: name one of them in place of `{self._place}`"
            )
        return found

    def prefer(self, served: str, others: Sequence[str]) -> None:
        """Serve one of several that are alike, as TorchServe does.

        Raises:
            HandlerError: the module is a file of its author's, and there are others.
        """
        if others and self._strict:
            names = self._named([served, *others])
            several = f"{self._place} has several that could be served, {names}"
            raise HandlerError(f"{several}: name one of them in place of `{self._place}`")
        self.pass_over(served, others)

    def pass_over(self, served: str, others: Sequence[str]) -> None:
        """Note that one is served, and others are not."""
        if others:
            names = self._named(others)
            self._note = f"`{self._place}:{served}` is served; {names} could be, too, named in place of `{self._place}`"

    def noted(self, entry: EntryPoint) -> EntryPoint:
        """Return the entry point with the note on what is not served."""
        if self._note:
            entry.notes.append(self._note)
        return entry

    def _named(self, names: Sequence[str]) -> str:
        return ", ".join(f"`{self._place}:{each}`" for each in names)


def _could_serve(method: Callable[..., Any], owner: type) -> bool:
    """Return whether a class could be served by this method: one with type hints, and not of a network."""
    torch = sys.modules.get("torch")
    return _has_hints(method) and not (torch is not None and issubclass(owner, torch.nn.Module))


def _instantiate(handler_class: type, typed: MakeTyped = untyped) -> EntryPoint:
    check_no_arguments(handler_class)
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
        other = next((name for name in ("setup", "load", "init") if callable(getattr(instance, name, None))), "")
        way = f"rename `{other}`" if other else "add `def initialize(self, context): ...`"
        raise HandlerError(
            f"{place_of(handler_class)}{handler_class.__name__} has no method `initialize`, which loads the model in"
            f" each worker: {way}"
        )
    check_form(instance.handle, "handle", handler_class.__name__)
    entry = EntryPoint(instance, instance.handle)
    if not entry.own_handle:
        entry.declared = declaration_inherited(handler_class)
    return entry


def passed_over(function: Callable[..., Any], error: BaseException) -> str:
    """Return the note on a function whose call with None only shows that it has no loading branch; empty otherwise.

    That is a TypeError or AttributeError that names NoneType, raised in the function's own code, or in functions of its
    file to which it passed None on, where none of them asks whether that is None. Every other error is one of loading.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)  # within a decorator, such as `torch.no_grad`
    if not isinstance(error, (TypeError, AttributeError)) or "NoneType" not in str(error) or code is None:
        return ""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    first = next((index for index, frame in enumerate(frames) if frame.f_code is code), None)
    if first is None or not all(_passes_on(frame, code) for frame in frames[first:]):
        return ""
    name = getattr(function, "__name__", "handle")
    return f"`{name}` has no loading branch: its call without data, which TorchServe makes, raised `{error}`"


def _passes_on(frame: FrameType, function: CodeType) -> bool:
    """Return whether a frame is of a function's file, was given None, and does not ask for it."""
    code = frame.f_code
    if code.co_filename != function.co_filename:
        return False
    if code.co_qualname.startswith(f"{function.co_qualname}.<locals>."):
        return True  # as a comprehension of its own
    first = 1 if code is function else code.co_argcount
    bound = int(code is function and code.co_varnames[:1] == ("self",))
    names = [name for name in code.co_varnames[bound : bound + first] if frame.f_locals.get(name, 0) is None]
    return bool(names) and not any(_asks_for_none(code, name) for name in names)


def _asks_for_none(code: CodeType, name: str) -> bool:
    """Return whether a function tests a parameter: `if data is None`, `if not data`, `data and …`."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError):
        return True  # unknown: the error stands
    return any(_tests(node, name) for node in ast.walk(tree))


def _tests(node: ast.AST, name: str) -> bool:
    match node:
        case ast.If(test=ast.Name(id=found)) | ast.IfExp(test=ast.Name(id=found)) | ast.While(test=ast.Name(id=found)):
            return found == name
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=found)):
            return found == name
        case ast.BoolOp(values=values):
            return any(isinstance(each, ast.Name) and each.id == name for each in values)
        case ast.Compare(left=left, comparators=[right]):
            sides = [left, right]
            named = any(isinstance(each, ast.Name) and each.id == name for each in sides)
            return named and any(isinstance(each, ast.Constant) and each.value is None for each in sides)
        case ast.Match(subject=ast.Name(id=found)):
            return found == name
    return False
