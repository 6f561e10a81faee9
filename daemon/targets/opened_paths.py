"""Files and folders that Python files name as paths: what a handler opens beside itself, found without running it.

A constant counts if there is a file or a folder of its name, and it is used as a path: joined to one, or an argument of
a function that takes one. A text with a suffix, or with a slash, counts wherever it stands; a plain word does not,
because `row["data"]` is no folder. Paths that are computed are not found.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tsctl.daemon.marfile import is_dropped
from tsctl.daemon.targets.source import parse

# The last part of a function's name → its arguments are paths.
_TAKE_PATHS = frozenset({
    "open", "Path", "PurePath", "join", "joinpath", "with_name", "listdir", "scandir", "walk", "glob", "iglob", "rglob",
    "exists", "isfile", "isdir", "load", "loadtxt", "genfromtxt", "read_csv", "read_json", "read_parquet", "CDLL",
    "from_pretrained", "from_file", "ImageFolder", "read_image", "imread", "InferenceSession",
})  # fmt: skip
_LONGEST = 250  # characters of a path
_WARMUP = re.compile(r"^warmup:(.*(?:\n(?:[ \t]|-).*)*)", re.MULTILINE)
_WORD = re.compile(r"[^\s,\[\]\"'-][^\s,\[\]\"']*")
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class OpenedPaths:
    """The paths that Python files name.

    Attributes:
        files: below the folder, by their paths from it; of a folder that is named, all that is in it.
        folders: those that are named, by their paths.
        outside: existing files and folders that are not below the folder, as they are written → the file that says so.
    """

    files: dict[str, Path] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    outside: dict[str, Path] = field(default_factory=dict)


def opened_by(sources: Sequence[Path], folder: Path, config: Path | None = None) -> OpenedPaths:
    """Return the files and folders that Python files open beside themselves.

    Args:
        sources: Python files.
        folder: relative paths begin there, as they do at the root of an archive.
        config: model-config.yaml, whose `warmup` names samples; None for none.
    """
    found = OpenedPaths()
    for source in sources:
        tree = parse(source)
        for text in _paths_in(tree, lambda text: _exists(folder, text)) if tree is not None else ():
            _add(found, folder, text, source)
    for text in _samples_of(config) if config is not None else ():
        if config is not None:
            _add(found, folder, text, config)
    return found


def folders_named(sources: Sequence[Path], config: Path | None, folders: Sequence[Path]) -> set[str]:
    """Return which folders keep their name in an archive: their names, if a source or the configuration says them."""
    names = {each.name: each for each in folders}
    said = set(_samples_of(config)) if config is not None else set()
    for source in sources:
        tree = parse(source)
        said |= set(_paths_in(tree, lambda text: text.partition("/")[0] in names)) if tree is not None else set()
    return {name for name in names if any(text.partition("/")[0] == name for text in said)}


def _add(found: OpenedPaths, folder: Path, text: str, source: Path) -> None:
    path = folder / text
    inside = Path(text)
    if ".." in inside.parts:
        if not path.resolve().is_relative_to(folder.resolve()):
            if set(inside.parts) != {".."}:  # a folder above, such as for `sys.path`, is no file
                found.outside.setdefault(text, source)
            return
        inside = path.resolve().relative_to(folder.resolve())
    if path.is_dir():
        if inside.parts:  # not the whole folder, for `.`
            found.folders.add(inside.as_posix())
            for each in sorted(path.rglob("*")):
                name = each.relative_to(path)
                if each.is_file() and not is_dropped(name):
                    found.files[(inside / name).as_posix()] = each
    elif path.is_file():
        found.files[inside.as_posix()] = path


def _exists(folder: Path, text: str) -> bool:
    try:
        return (folder / text).exists()
    except (OSError, ValueError):  # too long, or with a zero byte
        return False


def _samples_of(config: Path) -> list[str]:
    """Return the paths that `warmup` of a model-config.yaml names."""
    try:
        text = config.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    named = "\n".join(re.sub(r"(^|\s)#.*", "", each) for found in _WARMUP.findall(text) for each in found.split("\n"))
    return [_tidy(word) for word in _WORD.findall(named)]


def _paths_in(tree: ast.AST, exists: Callable[[str], bool]) -> Iterator[str]:
    """Yield the constants of a tree that are paths, as long as something is there."""
    used = {id(constant) for node in ast.walk(tree) for constant in _used_as_path(node)}
    within: set[int] = set()  # of a join that was found
    for node in ast.walk(tree):
        parts = [] if id(node) in within else _joined(node)
        whole = _tidy("/".join(parts)) if parts else ""
        if whole and exists(whole):
            yield whole
            within |= {id(each) for each in ast.walk(node)}  # the folders in between are not meant as a whole
            used -= within
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = _tidy(node.value)
            plain = id(node) not in used and "/" not in text and "." not in text
            if text and not plain and (id(node) in used or not _PATTERN.search(node.value)) and exists(text):
                yield text


def _tidy(text: str) -> str:
    """Return a relative path without patterns; empty if the text is none."""
    if len(text) > _LONGEST or "\n" in text or "\0" in text:
        return ""
    if text.startswith("/"):
        if Path(text).exists():
            return ""  # of the machine, not of the model
        text = text.lstrip("/")  # joined to a folder by `+`, or in an f-string
    parts: list[str] = []
    for part in text.split("/"):
        if _PATTERN.search(part):
            break
        if part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _used_as_path(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the constants that a call takes as paths, or that `/` joins to one."""
    if isinstance(node, ast.Call) and _name_of(node.func) in _TAKE_PATHS:
        inner: list[ast.expr] = [*node.args, *(each.value for each in node.keywords)]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        inner = [node.left, node.right]
    else:
        return
    for each in inner:
        yield from each.values if isinstance(each, ast.JoinedStr) else [each]


def _name_of(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _leaves(node: ast.AST) -> list[ast.Constant]:
    """Return the texts that a join ends with, in their order: of `a / "b" / "c"` and `join(a, "b", "c")` two."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        last = [node.right] if isinstance(node.right, ast.Constant) else []
        return [*_leaves(node.left), *last] if last or not isinstance(node.left, ast.BinOp) else []
    if isinstance(node, ast.Call) and _name_of(node.func) in ("join", "joinpath"):
        texts: list[ast.Constant] = []
        for each in node.args:
            texts = [*texts, each] if isinstance(each, ast.Constant) else []
        return texts
    return []


def _joined(node: ast.AST) -> list[str]:
    """Return the texts that a join of several parts ends with; empty unless there are two at least."""
    values = [each.value for each in _leaves(node)]
    texts = [value for value in values if isinstance(value, str)]
    return texts if len(texts) > 1 and len(texts) == len(values) else []
