"""Names for class numbers."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tsctl.handlers.builtin.support.labels import load_label_mapping, map_class_to_label
from tsctl.handlers.sdk.errors import HandlerError


def mapping_file(directory: Path, document: object) -> Path:
    path = directory / "index_to_name.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param({"0": "cat", "1": "dog"}, {"0": "cat", "1": "dog"}, id="an object of strings"),
        pytest.param({"0": ["n1", "cat"]}, {"0": "cat"}, id="of lists, whose last element is the name"),
        pytest.param({"object_type_names": ["back", "cat"]}, {0: "back", 1: "cat"}, id="a list of object types"),
        pytest.param({}, {}, id="an empty object"),
    ],
)
def test_a_mapping_is_read(tmp_path: Path, document: object, expected: dict[Any, str]) -> None:
    assert load_label_mapping(mapping_file(tmp_path, document)) == expected


def test_a_path_may_be_text(tmp_path: Path) -> None:
    assert load_label_mapping(str(mapping_file(tmp_path, {"0": "cat"}))) == {"0": "cat"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(["cat"], "should hold a JSON object, and holds a list", id="a list"),
        pytest.param({"3": 4}, "class 3 should have a string, or a list that ends in one", id="a number"),
        pytest.param({"3": []}, "class 3 should have a string, or a list that ends in one", id="an empty list"),
        pytest.param({"3": ["cat", 1]}, "class 3 should have a string", id="a list that ends in a number"),
    ],
)
def test_a_mapping_that_is_none_says_what_is_wrong(tmp_path: Path, document: object, message: str) -> None:
    with pytest.raises(TypeError, match=rf"index_to_name\.json.*{message}"):
        load_label_mapping(mapping_file(tmp_path, document))


@pytest.mark.parametrize(
    "content", [b"cat", b"", b'{"0": "\xe9"}', b"[" * 100_000], ids=["text", "", "Latin-1", "deep"]
)
def test_a_file_that_is_not_json_is_named_with_what_to_write(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "index_to_name.json").write_bytes(content)

    with pytest.raises(
        HandlerError, match=r"^index_to_name\.json is not JSON .*write the classes' names into it, an obj"
    ):
        load_label_mapping(tmp_path / "index_to_name.json")


def test_a_mark_of_utf_8_before_the_names_is_read_over(tmp_path: Path) -> None:
    (tmp_path / "index_to_name.json").write_bytes(b'\xef\xbb\xbf{"0": "cat"}')

    assert load_label_mapping(tmp_path / "index_to_name.json") == {"0": "cat"}


def test_a_missing_mapping_is_logged_and_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        mapping = load_label_mapping(tmp_path / "index_to_name.json")

    assert mapping is None
    assert caplog.messages == ["index_to_name.json is missing: class numbers are the names"]


@pytest.mark.parametrize(
    ("mapping", "classes", "expected"),
    [
        pytest.param({"0": "cat", "7": "dog"}, [[7, 0], [0, 7]], [["dog", "cat"], ["cat", "dog"]], id="by class"),
        pytest.param(None, [[7, 0], [0, 7]], [["7", "0"], ["0", "7"]], id="numbers without a mapping"),
        pytest.param({"0": "cat", "1": "dog"}, None, [["cat", "dog"]] * 2, id="classes count from 0"),
        pytest.param(None, None, [["0", "1"]] * 2, id="neither"),
    ],
)
def test_probabilities_get_names_in_the_order_given(
    mapping: dict[str, str] | None, classes: list[list[int]] | None, expected: list[list[str]]
) -> None:
    named = map_class_to_label([[0.9, 0.1], [0.6, 0.4]], mapping, classes)

    assert [list(row) for row in named] == expected
    assert [list(row.values()) for row in named] == [[0.9, 0.1], [0.6, 0.4]]


@pytest.mark.parametrize("probs", [[0.6, 0.3, 0.1], [0.3, 0.6, 0.1]])
def test_of_classes_with_one_name_the_most_probable_is_answered(probs: list[float]) -> None:
    names = {"0": "crane", "1": "crane", "2": "bus"}

    assert map_class_to_label([probs], names) == [{"crane": 0.6, "bus": 0.1}]


def test_a_class_without_a_name_is_told_with_what_names_the_others() -> None:
    with pytest.raises(KeyError, match="class 7 has no name: 1 classes are named"):
        map_class_to_label([[0.9]], {"0": "cat"}, [[7]])
