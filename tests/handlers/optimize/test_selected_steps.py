"""The optimisations that each handler gets."""

from typing import Any

import pytest

from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.image_segmenter import ImageSegmenter
from tsctl.handlers.builtin.object_detector import ObjectDetector
from tsctl.handlers.names import parse_optimizations
from tsctl.handlers.optimize.selected_steps import chosen
from tsctl.handlers.sdk.context import Context


class Own(ImageClassifier):
    """A user's own, with transforms and a first part of its own."""

    image_processing = None

    def initialize(self, context: Context) -> None:
        super().initialize(context)


class Mine(ImageClassifier):
    """Keeps a part of the model."""

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.body = self.model


class Labels(ImageClassifier):
    topk = 1

    def postprocess(self, data: Any) -> Any:
        return data


USUAL = {"fast_images": False, "fold": False, "channels_last": False}


@pytest.mark.parametrize(
    ("asked", "handler", "expected"),
    [
        pytest.param(None, ImageClassifier, USUAL, id="the image classifier has three by default"),
        pytest.param(None, ImageSegmenter, USUAL, id="so has the segmenter"),
        pytest.param(None, ObjectDetector, {}, id="the detector has none"),
        pytest.param(None, Labels, USUAL, id="a subclass has those that touch nothing of its own"),
        pytest.param(None, Mine, {"fast_images": False}, id="not those of the model where it sees this"),
        pytest.param(None, Own, {}, id="and none of images with transforms of its own"),
        pytest.param(None, BaseHandler, {}, id="nor has the base"),
        pytest.param(("bf16",), ImageClassifier, USUAL | {"bf16": True}, id="what is asked for is added"),
        pytest.param(("fold",), ImageClassifier, USUAL | {"fold": True}, id="a default may be asked for by name"),
        pytest.param(("none",), ImageClassifier, {}, id="none is none"),
        pytest.param(("none", "compile"), ImageClassifier, {"compile": True}, id="none and one is only that one"),
        pytest.param(("bf16", "fold"), Own, {"fold": True, "bf16": True}, id="a subclass gets what is asked for"),
    ],
)
def test_chosen(asked: tuple[str, ...] | None, handler: type, expected: dict[str, bool]) -> None:
    got = chosen(asked, handler)
    on_gpu = chosen(asked, handler, on_gpu=True)

    assert got == expected
    assert on_gpu == expected | ({"graph": False} if "fold" in expected and "channels_last" in expected else {})
    assert list(got) == [
        name for name in ("fast_images", "fold", "channels_last", "bf16", "int8", "compile", "graph") if name in got
    ]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("bf16", ("bf16",)),
        ("compile, bf16,compile,", ("bf16", "compile")),
        (["compile", "none", "fold"], ("none", "fold", "compile")),
        ([], ()),
        ("auto", ("auto",)),
        (" auto,", ("auto",)),
        (["auto"], ("auto",)),
    ],
)
def test_names_are_read_from_text_and_lists(value: object, names: tuple[str, ...]) -> None:
    assert parse_optimizations(value) == names


NAMES = "none, fast_images, scaled_decode, fold, channels_last, bf16, int8, compile, onnxruntime, graph"


@pytest.mark.parametrize(
    "value", ["int4", "bf16,all", ["fold", 1], 7, True, {"fold": 1}, "auto,bf16", ["none", "auto"]]
)
def test_what_is_no_list_of_names_is_refused_with_the_names(value: object) -> None:
    alone = "auto" in value if isinstance(value, str | list) else False
    place = "^`auto` without other names; .* that `optimizeTolerance` names$"
    with pytest.raises(ValueError, match=place if alone else f"^`auto`, or a list of {NAMES}$"):
        parse_optimizations(value)
