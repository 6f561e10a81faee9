"""The sets of optimisations that `tsctl optimize` tries."""

from collections.abc import Sequence

import pytest

from tsctl.daemon.extensions.optimizing.measuring.candidates import candidates


def texts(handler: str, asked: Sequence[str] | None, *, large_jpeg: bool = False) -> list[str]:
    return [each.text for each in candidates(handler, asked, large_jpeg=large_jpeg)]


ADDED = ["bf16", "int8", "compile", "onnxruntime", "bf16,compile"]


@pytest.mark.parametrize(
    ("handler", "large_jpeg", "expected"),
    [
        pytest.param("image_classifier", False, ["none", "default", *ADDED], id="a handler with defaults"),
        pytest.param("net.py", False, ["none", *ADDED], id="a handler without has no row for them"),
        pytest.param(
            "image_classifier", True, ["none", "default", "scaled_decode", *ADDED],
            id="a large JPEG may be decoded at a part of its size",
        ),
        pytest.param("text_handler", True, ["none", *ADDED], id="but not by a handler without images"),
    ],
)  # fmt: skip
def test_the_sets_to_try(handler: str, large_jpeg: bool, expected: list[str]) -> None:
    assert texts(handler, None, large_jpeg=large_jpeg) == expected


@pytest.mark.parametrize(
    ("handler", "asked", "now"),
    [
        pytest.param("image_classifier", None, "default", id="nothing was asked for"),
        pytest.param("net.py", None, "none", id="and there are no defaults"),
        pytest.param("image_classifier", ("none",), "none", id="the plain model was asked for"),
        pytest.param("image_classifier", ("fold",), "default", id="a default was asked for by name"),
        pytest.param("image_classifier", ("compile", "bf16"), "bf16,compile", id="in any order"),
        pytest.param("image_classifier", ("none", "fold"), "none,fold", id="a set of its own is tried, too"),
        pytest.param("net.py", ("none", "int8"), "int8", id="`none` has no effect without defaults"),
    ],
)
def test_one_set_is_that_of_now(handler: str, asked: Sequence[str] | None, now: str) -> None:
    assert [each.text for each in candidates(handler, asked, large_jpeg=False) if each.now] == [now]
