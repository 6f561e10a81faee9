"""A part of a YAML file, with its key and line for messages."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import yaml

from tsctl.errors import CliError


class ParsedFile:
    """A YAML file.

    Attributes:
        name: for messages.
        root: the document; None of an empty file.
        loader: which makes values of nodes.
        checked: the mappings in which keys were looked for that are there twice.

    Raises:
        yaml.YAMLError: the text is no YAML.
        RecursionError: it is nested too deeply.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.checked: set[int] = set()
        self.loader, self.root = _composed(text)


def _composed(text: str) -> tuple[Any, yaml.Node | None]:
    """Compose by libyaml, in a fifth of the time; again without it if it fails, for better words, lines and places."""
    try:
        loader: Any = yaml.CSafeLoader(text)
        return loader, loader.get_single_node()
    except (AttributeError, UnicodeEncodeError, yaml.YAMLError):  # the first: PyYAML was built without it
        loader = yaml.SafeLoader(text)
        return loader, loader.get_single_node()


class FileNode:
    """A part of the file, with its key and line for messages."""

    def __init__(self, file: ParsedFile, key: str, node: yaml.Node | None) -> None:
        self.key = key
        self._file = file
        self._node = node

    @property
    def is_empty(self) -> bool:
        """Return whether there is only a key, and no value."""
        return isinstance(self._node, yaml.ScalarNode) and not self._node.value

    @property
    def is_mapping(self) -> bool:
        return isinstance(self._node, yaml.MappingNode)

    def error(self, problem: str, hint: str = "") -> CliError:
        line = 1 if self._node is None else self._node.start_mark.line + 1
        return CliError(f"{self._file.name}:{line}: {f'`{self.key}`: ' if self.key else ''}{problem}", hint)

    def mapping(self, known: Sequence[str] = ()) -> dict[str, "FileNode"]:
        """Return the members by their keys.

        Raises:
            CliError: this is no mapping, a key is there twice, or is none of the `known` ones, if any are given.
        """
        if self._node is None or self.is_empty:
            return {}
        if not isinstance(self._node, yaml.MappingNode):
            raise self.error(f"this is {self._shown()}; expected a mapping, `key: value`")
        self._check_twice(self._node)
        self._file.loader.flatten_mapping(self._node)  # `<<: *anchor`; what is written beside it comes later, and wins
        found: dict[str, FileNode] = {}
        for key, value in self._node.value:
            word = str(key.value)
            member = FileNode(self._file, f"{self.key}.{word}" if self.key else word, value)
            at = FileNode(self._file, member.key, key)
            if known and word not in known:
                close = get_close_matches(word, known, n=1, cutoff=0.5)
                raise at.error("the key is unknown", f"did you mean `{close[0]}`?" if close else _one_of(known))
            found[word] = member
        return found

    def _check_twice(self, node: yaml.MappingNode) -> None:
        """Raise CliError if a key is there twice; a mapping is checked once, before others are merged into it."""
        if id(node) in self._file.checked:
            return
        self._file.checked.add(id(node))
        found = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise FileNode(self._file, self.key, key).error("a key here is a text", "quote the key")
            if key.value in found:
                at = FileNode(self._file, f"{self.key}.{key.value}" if self.key else str(key.value), key)
                raise at.error("the key is there twice", "remove one of them")
            found.add(key.value)

    def text(self) -> str:
        """Return the text as it is written: `1.10` is no number here.

        Raises:
            CliError: this is no text, or an empty one.
        """
        if not isinstance(self._node, yaml.ScalarNode) or not self._node.value:
            raise self.error(f"this is {self._shown()}; expected a text")
        return str(self._node.value)

    def value(self) -> Any:
        """Return the value as YAML reads it.

        Raises:
            CliError: the value, or one in it, is none of its tag, as in `!!int many`, or by its form, as in
                `2024-13-45`.
        """
        if self._node is None:
            return None
        try:
            return self._file.loader.construct_object(self._node, deep=True)
        except (ValueError, AttributeError, TypeError, OverflowError, LookupError):  # PyYAML: another kind of text
            node = next(reversed(self._file.loader.recursive_objects))  # the innermost that PyYAML has not finished
            wrong, kind = FileNode(self._file, self.key, node), str(node.tag).rpartition(":")[2]
            hint = "correct it, or quote it, without a tag"
            raise wrong.error(f"this is {wrong._shown()}, which is no {kind}", hint) from None

    def read(self, reader: Callable[[Any], Any]) -> Any:
        """Return the value that a reader makes of this one.

        Raises:
            CliError: the reader refuses the value with ValueError; its text describes valid ones.
        """
        value = self.value()
        try:
            return reader(value)
        except ValueError as error:
            raise self.error(f"this is {self._shown()}; expected {error}") from None

    def _shown(self) -> str:
        if isinstance(self._node, yaml.MappingNode):
            return "a mapping"
        if isinstance(self._node, yaml.SequenceNode):
            return "a list"
        return (
            f"`{self._node.value[:100]}`" if isinstance(self._node, yaml.ScalarNode) and self._node.value else "empty"
        )


def _one_of(words: Sequence[str]) -> str:
    return f"the keys here are {', '.join(f'`{word}`' for word in words)}"
