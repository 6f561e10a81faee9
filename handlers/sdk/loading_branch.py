"""Whether a function handler has a branch for loading: TorchServe calls it once with None for its data."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any


def passed_over(function: Callable[..., Any], error: BaseException) -> str:
    """Return the note on a function whose call with None only shows that it has no loading branch; empty otherwise.

    That is a TypeError or AttributeError that names NoneType, raised in the function's own code, where the function
    nowhere asks whether its data is None. Every other error is one of loading.
    """
    code = getattr(function, "__code__", None)
    if not isinstance(error, (TypeError, AttributeError)) or "NoneType" not in str(error) or code is None:
        return ""
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    raised = trace.tb_frame.f_code
    own = raised is code or raised.co_qualname.startswith(f"{code.co_qualname}.<locals>.")
    if not own or raised.co_filename != code.co_filename or _asks_for_none(function):
        return ""
    name = getattr(function, "__name__", "handle")
    return f"`{name}` has no loading branch: its call without data, which TorchServe makes, raised `{error}`"


def _asks_for_none(function: Callable[..., Any]) -> bool:
    """Return whether the function tests its first parameter: `if data is None`, `if not data`, `data and …`."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return True  # unknown: the error stands
    name = next(iter(inspect.signature(function).parameters), "")
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
