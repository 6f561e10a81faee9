"""The modules that a wheel compiles use nothing that means something else there (mypyc is not quite Python).

A slice of bytes whose end is before its start is empty in Python, and a SystemError where it is compiled. Such ends
come from `find`, which says -1 for nowhere, and from negative numbers.
"""

import ast
import importlib
import os
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeGuard

import pytest

from tests.compiled import COMPILED, modules, touches_compiled
from tests.places import ROOT

MODULES = modules()
DAEMON_ERRORS = {
    node.name for node in ast.parse((ROOT / "daemon/core/errors.py").read_text()).body if isinstance(node, ast.ClassDef)
}
NOT_TEXT = ("registry", "self", "self.in_flight", "self._rows")  # what else is called `find` there


def faults(source: str) -> list[str]:
    """Return one line for each place where a compiled slice may mean something else."""
    tree = ast.parse(source)
    checked = set(_checked(tree))
    found = []
    for node in ast.walk(tree):
        if _is_find(node) and node not in checked:
            found.append(f"line {node.lineno}: the result of `find` is used before it is compared with 0")
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and _may_cross(node):
            found.append(f"line {node.lineno}: a slice from a start to a negative end")
    return found


def _is_find(node: ast.AST) -> TypeGuard[ast.Call]:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    whose = node.func.value
    return node.func.attr in ("find", "rfind") and ast.unparse(whose) not in NOT_TEXT


def _checked(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the calls of `find` whose result has a name that the next statement compares: `if NAME < 0`, or `>= 0`."""
    for node in ast.walk(tree):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if not isinstance(block, list):
                continue
            for assigned, after in pairwise(block):
                if not (isinstance(assigned, ast.Assign) and _is_find(assigned.value) and isinstance(after, ast.If)):
                    continue
                name = ast.unparse(assigned.targets[0])
                if {f"{name} < 0", f"{name} >= 0"} & {ast.unparse(part) for part in ast.walk(after.test)}:
                    yield assigned.value


def _may_cross(node: ast.Subscript) -> bool:
    assert isinstance(node.slice, ast.Slice)
    lower, upper = node.slice.lower, node.slice.upper
    text = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "ascii"  # a slice of str may
    return lower is not None and isinstance(upper, ast.UnaryOp) and isinstance(upper.op, ast.USub) and not text


def test_what_is_tested_is_compiled_where_it_should_be() -> None:
    files = [str(importlib.import_module(name.removesuffix(".py").replace("/", ".")).__file__) for name in MODULES]

    assert [file for file in files if file.endswith(".so") is not (COMPILED in os.environ)] == []


def test_the_library_of_all_compiled_modules_has_a_name_of_ours() -> None:
    libraries = [file.name for file in ROOT.glob("*.so")]

    assert len(libraries) == (COMPILED in os.environ)
    assert all(name.startswith("tsctl_") for name in libraries)


def test_no_slice_of_a_compiled_module_ends_before_it_starts() -> None:
    found = {module: faults((ROOT / module).read_text()) for module in MODULES}

    assert {module: lines for module, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        pytest.param("end = data.find(b'x', start)\ndigits = data[start:end]", 1, id="an end that is used at once"),
        pytest.param("end = data.find(b'x')\nif end < 0 or end > 9:\n    raise X\nrest = data[:end]", 0, id="compared"),
        pytest.param("rest = data[data.rfind(b'x'):]", 1, id="within a slice"),
        pytest.param("rest = data[1:-1]", 1, id="a negative end"),
        pytest.param("rest = data[:-1] + data[-3:]", 0, id="a negative end or start alone is clamped"),
        pytest.param("model = registry.find(name)", 0, id="a find that is not of bytes"),
    ],
)
def test_what_may_end_before_it_starts_is_found(source: str, count: int) -> None:
    assert len(faults(source)) == count


@pytest.mark.parametrize(
    ("file", "touches"),
    [
        pytest.param("http/parsing/test_parser.py", True, id="in the folder of a compiled module"),
        pytest.param("handlers/typed/test_arrays.py", True, id="of the handlers, too"),
        pytest.param("config/test_endpoints.py", True, id="it names one"),
        pytest.param("test_compiled_modules.py", True, id="it is of all of them"),
        pytest.param("tsctl/test_cli.py", False, id="neither"),
        pytest.param("handlers/test_names.py", False, id="one module above others says nothing of its folder"),
    ],
)
def test_what_runs_on_a_compiled_wheel_follows_from_the_list(file: str, touches: bool) -> None:
    assert touches_compiled(ROOT / "tests" / file) is touches


def errors_in(source: str) -> list[str]:
    """Return the classes that override an attribute of an error of the daemon, by the name of their base."""
    classes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef))
    errors = [each for each in classes if set(map(ast.unparse, each.bases)) & DAEMON_ERRORS]
    return [each.name for each in errors if any(isinstance(line, ast.Assign | ast.AnnAssign) for line in each.body)]


def test_no_compiled_module_declares_an_error_with_a_status() -> None:
    """Compiled, its `status` would be the base's: an attribute of an interpreted class is not overridden."""
    found = {module: errors_in((ROOT / module).read_text()) for module in MODULES}

    assert {module: names for module, names in found.items() if names} == {}
    planted = "class A(DaemonError):\n    status = 413\nclass B(BadRequest): ...\nclass C(Exception): ..."
    assert errors_in(planted) == ["A"]
