"""The archive's `model-config.yaml`, read within limits.

PyYAML takes seconds for a few hundred kilobytes, and square time in the depth of brackets: read the file in a thread.
The parser in C would be faster, and keep the interpreter's lock, and so the event loop, for all of its time.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.models.archives.manifest import read_text
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.tables import MODEL_SETTINGS
from tsctl.handlers.texts.near import plain

# Errors of PyYAML: for a month 13, an empty `!!int`, a `!!timestamp` of no date, and deep nesting not its own one.
_NOT_YAML = (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError)

# TorchServe's keys that have no effect here; each one set is logged.
_WITHOUT_EFFECT = ("maxRetryTimeoutInSec",)
# And those without which requests would be answered in another way than the archive asks for.
_REFUSED = {
    "useJobTicket": "refuses requests while no worker is free, and here they wait: remove it, and set `jobQueueSize` to"
    " the number of requests that may wait",
}


def without_effect(document: Mapping[str, Any]) -> list[str]:
    """Return the keys that are set and have no effect here."""
    ours = [key for key in _WITHOUT_EFFECT if document.get(key)]
    return ours + [key for each in EXTENSIONS for key in each.without_effect(document)]


def misspelt(document: Mapping[str, Any]) -> list[str]:
    """Return a sentence on each key that is a setting's but for case and signs; any other key is the handler's own."""
    known = {plain(row.yaml): row.yaml for row in MODEL_SETTINGS if row.yaml}
    return [
        f"`{key}` in model-config.yaml is no setting; did you mean `{known[plain(key)]}`?"
        for key in map(str, document)
        if key not in known.values() and plain(key) in known
    ]


def check_served(document: Mapping[str, Any], config_file: str | None) -> None:
    """Check that the archive asks for nothing that would be missed.

    Raises:
        InvalidModel: a key of TorchServe is set that is not served; the message names it.
    """
    for key, why in _REFUSED.items():
        if document.get(key):
            raise InvalidModel(f"{config_file}: `{key}` is not served. In TorchServe it {why}.")


_MOST_MERGED = 1000  # pairs
_DEEPEST = 50  # levels


class _Loader(yaml.SafeLoader):
    """A safe loader with bounded depth, and bounded merges: `<<` copies, so that 400 bytes become a billion pairs."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.depth >= _DEEPEST:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, f"more than {_DEEPEST} levels", mark)
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                nodes = value.value if isinstance(value, yaml.SequenceNode) else [value]
                mappings = [each for each in nodes if isinstance(each, yaml.MappingNode)]
                for mapping in mappings:
                    self.flatten_mapping(mapping)
                if sum(len(mapping.value) for mapping in mappings) > _MOST_MERGED:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"merges of more than {_MOST_MERGED} pairs", key.start_mark
                    )
        super().flatten_mapping(node)


def read_yaml(model_dir: Path, config_file: str | None) -> dict[str, Any]:
    """Read the archive's `model-config.yaml`; an empty dict if there is none. Blocks.

    Raises:
        InvalidModel: the file is not YAML, is too long or too deep, or is not a mapping.
    """
    if config_file is None:
        return {}
    try:
        document = yaml.load(read_text(model_dir / Path(config_file).name, config_file), _Loader)
    except _NOT_YAML as error:
        raise InvalidModel(f"`{config_file}` is not YAML: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise InvalidModel(f"`{config_file}` holds a {type(document).__name__}, and should hold a mapping.")
    return document
