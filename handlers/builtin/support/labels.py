"""Names for class numbers: `index_to_name.json`."""

import itertools
import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tsctl.handlers.sdk.errors import HandlerError

_log = logging.getLogger(__name__)


def load_label_mapping(mapping_file_path: str | Path) -> dict[str, Any] | None:
    """Read class number → name from a JSON file.

    The file holds an object of strings, or of lists (their last element is the name), or `{"object_type_names": [name,
    …]}`. For a missing file, log a warning and return None.

    Raises:
        TypeError: the JSON value has another structure.
        HandlerError: the file is not JSON in UTF-8.
        OSError: the file cannot be read.
    """
    path = Path(mapping_file_path)
    if not path.is_file():
        _log.warning("%s is missing: class numbers are the names", path.name)
        return None
    try:
        mapping = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        form = 'an object such as {"0": "cat", "1": "dog"}'
        raise HandlerError(f"{path.name} is not JSON ({error}): write the classes' names into it, {form}") from None
    if not isinstance(mapping, dict):
        raise TypeError(f"{path.name} should hold a JSON object, and holds a {type(mapping).__name__}")
    if isinstance(mapping.get("object_type_names"), list):
        return dict(enumerate(mapping["object_type_names"]))  # type: ignore[arg-type]  # keys as TorchServe makes them
    for key, value in mapping.items():
        names = value if isinstance(value, list) else [value]
        if not names or not isinstance(names[-1], str):
            raise TypeError(f"{path.name}: class {key} should have a string, or a list that ends in one")
        mapping[key] = names[-1]
    return mapping


def map_class_to_label(
    probs: Sequence[Sequence[float]],
    mapping: dict[str, Any] | None = None,
    lbl_classes: Iterable[Sequence[int]] | None = None,
) -> list[dict[str, float]]:
    """Name the probabilities of a batch.

    Args:
        probs: shape (rows, k).
        mapping: class number as a string → name; None uses the numbers.
        lbl_classes: class numbers, shape (rows, k); by default 0 … k - 1.

    Returns:
        For each row, name → probability, in the given order; of classes with one name (ImageNet has two cranes) the
        most probable.

    Raises:
        KeyError: a class has no name.
    """
    if lbl_classes is None:
        lbl_classes = itertools.repeat(range(len(probs[0])) if probs else range(0), len(probs))
    answers: list[dict[str, float]] = []
    try:
        for row in zip(lbl_classes, probs, strict=True):
            answers.append({})
            for number, prob in zip(*row, strict=True):
                name = str(mapping[str(number)]) if mapping is not None else str(number)
                if name not in answers[-1] or prob > answers[-1][name]:
                    answers[-1][name] = prob
        return answers
    except KeyError as error:
        named = f"{len(mapping or ())} classes are named, in index_to_name.json or by `classes`"
        raise KeyError(f"the model's class {error.args[0]} has no name: {named}") from None


def each_named(
    probs: Sequence[Sequence[float]], mapping: dict[str, Any] | None, classes: Sequence[Sequence[int]]
) -> list[Any]:
    """Do as `map_class_to_label`; the item of a row with a class that has no name is the KeyError: it fails alone."""
    try:
        return [*map_class_to_label(probs, mapping, classes)]
    except KeyError as error:
        if len(probs) == 1:
            return [error]
    return [each_named([row], mapping, [own])[0] for row, own in zip(probs, classes, strict=True)]
