"""The archive's `model-config.yaml`, read within limits."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from daemon.core.errors import InvalidModel

# Errors of PyYAML: for a month 13, an empty `!!int`, a `!!timestamp` of no date, and deep nesting not its own one.
_NOT_YAML = (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError)

# TorchServe's keys that have no effect here; each one set is logged.
_WITHOUT_EFFECT = ("useJobTicket", "maxRetryTimeoutInSec")


def without_effect(document: Mapping[str, Any]) -> list[str]:
    """Return the keys that are set and have no effect here."""
    return [key for key in _WITHOUT_EFFECT if document.get(key)]


_MOST_MERGED = 1000  # pairs


class _Loader(yaml.SafeLoader):
    """A safe loader with bounded merges: `<<` copies, so that 400 bytes could become a billion pairs."""

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
    """Read the archive's `model-config.yaml`; an empty dict if there is none.

    Raises:
        InvalidModel: the file is not YAML, or is not a mapping.
    """
    if config_file is None:
        return {}
    try:
        document = yaml.load((model_dir / Path(config_file).name).read_bytes(), _Loader)
    except _NOT_YAML as error:
        raise InvalidModel(f"`{config_file}` is not YAML: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise InvalidModel(f"`{config_file}` holds a {type(document).__name__}, and should hold a mapping.")
    return document
