"""What a mutant is: one small change of a module's syntax tree.

The operators are those that are usual (Offutt et al., "An experimental determination of sufficient mutant operators",
ACM TOSEM 5(2), 1996: relations, logic, arithmetic), and those of statements: a call that is left out, a returned value
that is None, a condition that always, or never, holds.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

_RELATIONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change.

    Attributes:
        line: of the source, from 1.
        text: the function, its line, and what of that becomes what; the same wherever they move to.
    """

    line: int
    text: str
    _source: str
    _place: int
    _number: int

    def changed(self) -> ast.Module:
        """Return the whole module, changed; its lines are those of the source."""
        tree = ast.parse(self._source)
        function = max((each for each in outermost(tree) if first_line(each) <= self.line), key=first_line)
        target = list(_places(tree))[self._place]
        kept = any(isinstance(each, ast.Name) and each.id == "super" for each in ast.walk(function))
        _Replacing(target, _changed(target)[self._number]).visit(tree)
        if kept:  # a function that the interpreter has made can be given other code only with the same free names
            function.body += ast.parse("if False: __class__").body
        return ast.fix_missing_locations(tree)


def mutants(source: str) -> list[Mutant]:
    """Return all mutants of a module, in the order of its lines."""
    lines, tree = source.splitlines(), ast.parse(source)
    within = {id(node): each.name for each in ast.walk(tree) if _is_function(each) for node in ast.walk(each)}
    found = []
    for index, place in enumerate(_places(tree)):
        line, before = lines[place.lineno - 1].strip(), _told(place)
        where = within[id(place)] if line.startswith(before) else f"{within[id(place)]}: {line}"
        for number, other in enumerate(_changed(place)):
            found.append(Mutant(place.lineno, f"{where}: {before} → {_told(other)}", source, index, number))
    return sorted(found, key=lambda each: each.line)


def outermost(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions of a module and of its classes, not those within functions."""
    for node in ast.iter_child_nodes(tree):
        if _is_function(node):
            yield node
        else:
            yield from outermost(node)


def first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the line of its first decorator, or its own: that of its code."""
    return min([function.lineno, *(each.lineno for each in function.decorator_list)])


def _told(node: ast.AST) -> str:
    return f"if {ast.unparse(node.test)}" if isinstance(node, ast.If | ast.While) else ast.unparse(node)


def _is_function(node: ast.AST) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _places(tree: ast.Module) -> Iterator[Any]:
    """Yield the nodes that can change: those in functions, but for types, docstrings, asserts and raised messages."""

    def walk(node: ast.AST, within: bool) -> Iterator[Any]:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "bases", "type_params", "defaults", "kw_defaults"):
                continue
            for each in value if isinstance(value, list) else [value]:
                if not isinstance(each, ast.AST) or isinstance(each, (ast.Assert, ast.Raise, ast.JoinedStr)):
                    continue
                if isinstance(each, ast.FunctionDef) and each.name == "__repr__":
                    continue
                inside = within or _is_function(each)
                if within and _changed(each):
                    yield each
                yield from walk(each, inside)

    yield from walk(tree, False)


def _changed(node: ast.AST) -> list[Any]:
    """Return what may stand in the node's place."""
    match node:
        case ast.Compare(ops=[operator]):
            return [_with(node, ops=[_RELATIONS[type(operator)]()])]
        case ast.BoolOp(op=operator):
            return [_with(node, op=ast.Or() if isinstance(operator, ast.And) else ast.And())]
        case ast.UnaryOp(op=ast.Not()):
            return [node.operand]
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in _ARITHMETIC:
            return [_with(node, op=_ARITHMETIC[type(operator)]())]
        case ast.Constant(value=bool(value)):
            return [ast.Constant(not value)]
        case ast.Constant(value=int(number) | float(number)):
            return [ast.Constant(number + 1)]
        case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Constant):
            always = [] if isinstance(node, ast.While) else [_with(node, test=ast.Constant(True))]
            return [*always, _with(node, test=ast.Constant(False))]
        case ast.Expr(value=ast.Call()):
            return [ast.Pass()]
        case ast.Return(value=None | ast.Constant(value=None)):
            return []
        case ast.Return():
            return [ast.Return(ast.Constant(None))]
        case ast.Assign() if not isinstance(node.targets[0], ast.Name):  # without a name's value there is a NameError
            return [ast.Pass()]
    return []


def _with(node: Any, **fields: Any) -> Any:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


class _Replacing(ast.NodeTransformer):
    def __init__(self, target: ast.AST, other: ast.AST) -> None:
        self._target, self._other = target, other

    def visit(self, node: ast.AST) -> Any:
        return self._other if node is self._target else super().visit(node)
