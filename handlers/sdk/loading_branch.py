"""Whether a function handler has a branch for loading: TorchServe calls it once with None for its data."""

import ast
import inspect
import textwrap
import traceback
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any


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
