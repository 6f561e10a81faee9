"""Python files as text: their syntax, the files of their folder that they import, and their module classes.

Nothing here is run. A wrong guess about imports costs a watched file more or less, never an answer.
"""

import ast
import warnings
from collections import deque
from collections.abc import Iterator
from pathlib import Path

LARGEST = 1024 * 1024  # bytes of a file that is read
MOST_FILES = 200  # of one folder
# Packages whose classes are models, and their parts whose classes are not.
_OF_MODELS = ("torch", "torchvision", "timm", "transformers")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# The ends of the names of built-in handlers' classes, and of those that are derived from them.
_HANDLERS = ("Handler", "Classifier", "Detector", "Segmenter")
_NOT_MODELS = ("torch.utils", "torch.autograd", "torch.optim", "torchvision.transforms", "torchvision.datasets")


class TargetError(Exception):
    """A target cannot be served.

    Attributes:
        hint: the remedy, as the end of a message or below one.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def parse(file: Path) -> ast.Module | None:
    """Parse a Python file; None if the file cannot be read, is too large or is not Python."""
    try:
        with file.open("rb") as opened:
            source = opened.read(LARGEST + 1)
        return None if len(source) > LARGEST else _parse(source, str(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def check_syntax(file: Path) -> None:
    """Raise a TargetError with the file's name, the line and its text if a file is not valid Python."""
    try:
        _parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        where = f"{file.name}, line {error.lineno}" if error.lineno else file.name
        text = (error.text or "").strip()
        raise TargetError(f"{where}: {type(error).__name__}: {error.msg}" + (f"\n    {text}" if text else "")) from None
    except (ValueError, RecursionError, MemoryError) as error:  # a zero byte; deep nesting
        raise TargetError(f"{file.name} is not Python source: {error}") from None
    except OSError as error:
        raise TargetError(f"cannot read `{file}`: {error.strerror}") from None


def _parse(source: bytes, name: str) -> ast.Module:
    with warnings.catch_warnings():  # an invalid escape; the worker's own import warns
        warnings.simplefilter("ignore")
        return ast.parse(source, name)


def top_names(tree: ast.Module) -> list[str]:
    """Return the names that a module binds at its top: functions, classes, variables and imports."""
    found: list[str] = []
    for node in _statements(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found += [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.Assign):
            found += [each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.append(node.target.id)
    return found


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run with a module, those within `if` and `try` too."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, ast.stmt):
                    yield from _statements([inner])
                elif isinstance(inner, ast.ExceptHandler):
                    yield from _statements(inner.body)


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each import anywhere in a module, as the number of leading dots and a dotted name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = f"{node.module}." if node.module else ""
            if node.module:
                yield node.level, node.module
            for alias in node.names:
                yield node.level, f"{base}{alias.name}"


def top_imports(files: list[Path]) -> set[str]:
    """Return the top-level names of the modules that files import, anywhere in them."""
    trees = filter(None, map(parse, files))
    return {name.partition(".")[0] for tree in trees for dots, name in imports(tree) if not dots}


def local_files(file: Path) -> list[Path]:
    """Return a Python file and the files of its folder, and the folders below, that it imports, directly or not."""
    root, found = file.parent, {file: None}
    waiting = deque([file])
    while waiting and len(found) < MOST_FILES:
        current = waiting.popleft()
        tree = parse(current)
        for dots, name in imports(tree) if tree is not None else ():
            base = root if not dots else current.parents[dots - 1]
            if not base.is_relative_to(root):
                continue
            for other in _files_of(base, name):
                if other not in found:
                    found[other] = None
                    waiting.append(other)
    return list(found)


def _files_of(base: Path, name: str) -> Iterator[Path]:
    """Yield the files that the import of a dotted name runs, as far as they are below `base`."""
    path = base
    for part in name.split("."):
        path = path / part
        for candidate in (path.with_name(f"{part}.py"), path / "__init__.py"):
            if candidate.is_file():
                yield candidate


def is_handler(file: Path) -> bool:
    """Return whether a Python file defines what can be served: `handle` or `predict`, or a class for it.

    A class of a torch.nn.Module is a model, whatever its methods are.
    """
    tree = parse(file)
    if tree is None:
        return False
    statements = list(_statements(tree.body))
    functions = [each.name for each in statements if isinstance(each, _FUNCTIONS)]
    models = module_classes(file)
    classes = [each for each in statements if isinstance(each, ast.ClassDef) and each.name not in models]
    methods = [each.name for node in classes for each in node.body if isinstance(each, _FUNCTIONS)]
    bases = [ast.unparse(base).rpartition(".")[2] for node in classes for base in node.bases]
    return bool({"handle", "predict"} & {*functions, *methods}) or any(each.endswith(_HANDLERS) for each in bases)


def module_classes(file: Path) -> list[str]:
    """Return the torch.nn.Module classes that a file defines, without those that are bases of another one."""
    tree = parse(file)
    if tree is None:
        return []
    origins: dict[str, str] = {}
    for node in _statements(tree.body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                origins[name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            origins |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    classes = {node.name: node for node in _statements(tree.body) if isinstance(node, ast.ClassDef)}
    models: set[str] = set()
    used: set[str] = set()
    for name, node in classes.items():  # a base class is defined above the class that names it
        for base in map(ast.unparse, node.bases):
            if base in models or _is_of_models(base, origins):
                models.add(name)
                used.add(base)
    return [name for name in classes if name in models and name not in used]


def _is_of_models(base: str, origins: dict[str, str]) -> bool:
    first, _, rest = base.partition(".")
    full = origins.get(first, "") + (f".{rest}" if rest else "")
    inside = any(full.startswith(f"{package}.") for package in _OF_MODELS)
    return inside and not any(full.startswith(f"{part}.") for part in _NOT_MODELS)
