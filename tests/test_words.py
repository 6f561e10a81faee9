"""How docstrings and help texts are worded, read from the source: the noun is said, and each thing has one name."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from tsctl.cli import all_verbs, main
from tsctl.daemon.api.inference.openapi import describe_api, describe_model
from tsctl.daemon.api.management.openapi import describe_management

ROOT = Path(__file__).parent.parent
ROOMS = ("daemon", "handlers", "tsctl")

# PEP 257: a function's docstring begins with its effect, as in "Return …" or "Parse …".
WEAK = frozenset({"give", "gives", "say", "says", "tell", "tells", "have", "has", "be", "is"})
SUBJECTLESS = frozenset({"it", "what", "who", "whoever", "nobody", "somebody", "that"})
PRONOUNS = frozenset({"it", "its", "them", "they", "this", "that", "these", "those", "what", "who", "one", "itself"})
SECTIONS = frozenset({"Args:", "Attributes:", "Raises:", "Returns:", "Yields:"})
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_WORD = re.compile(r"[A-Za-z']+")
_ENTRY = re.compile(r"(?P<indent> *)(?P<name>[A-Za-z_][\w.]*): \S")


class Text(NamedTuple):
    """A docstring or help text; `where` is its file and line."""

    where: str
    text: str


class Source(NamedTuple):
    """The words of one module."""

    docstrings: list[Text]
    classes: list[str]


def words(text: str) -> list[str]:
    return _WORD.findall(text)


def first_word(text: str) -> str:
    return next(iter(words(text)), "").lower()


def is_weak(text: str) -> bool:
    """Return whether a text begins with a verb that leaves the effect out."""
    return first_word(text) in WEAK


def is_pronoun(text: str) -> bool:
    """Return whether a text is a pronoun, or a verb and a pronoun: "It.", "Show it."."""
    found = [word.lower() for word in words(text)]
    return 0 < len(found) <= 2 and found[-1] in PRONOUNS


def unnamed_errors(docstring: str) -> list[str]:
    """Return the entries of a `Raises:` section that are not `Error: when.`, with one error in each."""
    wrong, inside, indent = [], False, 0
    for line in docstring.splitlines():
        if line.strip() in SECTIONS:
            inside, indent = line.strip() == "Raises:", len(line) - len(line.lstrip()) + 4
        elif inside and line.strip():
            depth = len(line) - len(line.lstrip())
            inside = depth >= indent
            if depth == indent and _ENTRY.match(line) is None:
                wrong.append(line.strip())
    return wrong


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a module and the statements in it, at any depth; no expressions, which are most of a tree."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from statements(child)


def read(source: str, name: str) -> Source:
    """Return the docstrings and the names of the classes of a module."""
    docstrings, classes = [], []
    for node in statements(ast.parse(source)):
        if isinstance(node, _DOCUMENTED):
            text = ast.get_docstring(node)
            if text:
                docstrings.append(Text(f"{name}:{getattr(node, 'lineno', 1)}", text))
        if isinstance(node, ast.ClassDef):
            classes.append(node.name)
    return Source(docstrings, classes)


@cache
def product() -> Source:
    """Return the words of all modules that users and newcomers read."""
    whole = Source([], [])
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            part = read(path.read_text(), str(path.relative_to(ROOT)))
            whole.docstrings.extend(part.docstrings)
            whole.classes.extend(part.classes)
    return whole


def command_helps() -> Iterator[Text]:
    """Yield the help texts of every verb, in the list and as click prints them, and of every option."""
    yield from (Text(f"tsctl {verb}", text) for verb, (_, text) in all_verbs().items())
    context = click.Context(main, **main.context_settings)
    commands = {"tsctl": main} | {f"tsctl {verb}": main.get_command(context, verb) for verb in all_verbs()}
    for name, command in commands.items():
        assert command is not None
        yield Text(name, command.help or "")
        for option in command.params:
            if isinstance(option, click.Option) and option.help:
                yield Text(f"{name} {option.opts[0]}", option.help)


def descriptions(document: Any, at: str) -> Iterator[Text]:
    """Yield each `description` of an OpenAPI document."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key == "description" and isinstance(value, str):
                yield Text(at, value)
            else:
                yield from descriptions(value, f"{at}/{key}")
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from descriptions(value, f"{at}/{index}")


def test_each_help_text_is_there_begins_with_the_effect_and_is_no_bare_pronoun() -> None:
    assert [
        text.where for text in command_helps() if not text.text or is_weak(text.text) or is_pronoun(text.text)
    ] == []


def test_docstrings_begin_with_their_subject_and_effect_and_are_no_bare_pronoun() -> None:
    assert [
        text.where
        for text in product().docstrings
        if is_weak(text.text) or is_pronoun(text.text) or first_word(text.text) in SUBJECTLESS
    ] == []


def test_descriptions_of_the_http_api_are_plain() -> None:
    documents = {"management": describe_management(own=True), "inference": describe_api(), "model": describe_model("m")}
    found = [text for name, document in documents.items() for text in descriptions(document, name)]

    assert len(found) > 100
    assert [text.where for text in found if is_weak(text.text) or is_pronoun(text.text)] == []


def test_each_error_has_a_line_of_its_own() -> None:
    wrong = {text.where: unnamed_errors(text.text) for text in product().docstrings}

    assert {where: lines for where, lines in wrong.items() if lines} == {}


def test_no_two_classes_share_a_name() -> None:
    assert {name for name, count in Counter(product().classes).items() if count > 1} == set()


@pytest.mark.parametrize(
    ("found", "wrong", "right"),
    [
        (is_weak, ["Give the time.", "Says which it is.", "Tell.", "Have it run.", "`be` there."],
         ["Return the time.", "Givens of a batch.", "The rest is given.", "Beside it.", ""]),
        (is_pronoun, ["It.", "Show it.", "what", "Make them."], ["Show the time.", "Write it down.", "Its time.", ""]),
    ],
)  # fmt: skip
def test_such_texts_are_found(found: Callable[[str], bool], wrong: list[str], right: list[str]) -> None:
    assert [text for text in (*wrong, *right) if found(text)] == wrong


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ("BadRequest: the form is malformed.", []),
        ("BadRequest: the form is malformed,\n        or too large.", []),
        ("wire.BrokenMessage: the frame is cut short.", []),
        ("BadRequest", ["BadRequest"]),
        ("BadRequest, QueueFull: rejected.", ["BadRequest, QueueFull: rejected."]),
    ],
)
def test_errors_of_a_docstring_are_read(entry: str, wrong: list[str]) -> None:
    docstring = f"Read a form.\n\nArgs:\n    a, b: numbers\n\nRaises:\n    OSError: no disk.\n    {entry}\n\nMore."

    assert unnamed_errors(docstring) == wrong


def test_texts_of_a_module_are_read() -> None:
    module = '"""A module."""\nclass Cat:\n    """A cat."""\n    async def purr(self):\n        """Purr."""\n'

    assert read(module, "cat.py") == Source(
        [Text("cat.py:1", "A module."), Text("cat.py:2", "A cat."), Text("cat.py:4", "Purr.")],
        ["Cat"],
    )
