"""The names of methods that many classes have, so that a search for one does not find the right one."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

MOST = 12  # classes with a method of the same name
PROTOCOLS = ("close", "read")  # of files, and of whatever `contextlib.closing` closes


class Class(NamedTuple):
    """A class: its name, the last parts of its bases' names, and its methods without Python's own, `__init__`."""

    name: str
    bases: frozenset[str]
    methods: frozenset[str]


def classes_in(source: str) -> Iterator[Class]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            functions = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            methods = {each.name for each in functions if not each.name.startswith("__")}
            bases = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
            yield Class(node.name, frozenset(bases), frozenset(methods))


def common(sources: Mapping[str, str], most: int = MOST) -> dict[str, int]:
    """Return the names of methods in more than so many classes, each with their number, the largest first.

    A class does not count for a method that a base class among these sources has, nor does a `Protocol` for any.
    """
    classes = [each for source in sources.values() for each in classes_in(source)]
    by_name: dict[str, set[str]] = defaultdict(set)
    for each in classes:
        by_name[each.name] |= each.methods
    count = Counter(
        method
        for each in classes
        if "Protocol" not in each.bases
        for method in each.methods.difference(PROTOCOLS, *(by_name[base] for base in each.bases if base in by_name))
    )
    return {method: number for method, number in count.most_common() if number > most}
