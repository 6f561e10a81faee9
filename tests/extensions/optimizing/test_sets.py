"""What is tried: only where it was asked for, or the handler has defaults and nothing was said."""

import pytest

from tsctl.daemon.extensions.optimizing.building import is_tried, lossy_of, sets_to_try


@pytest.mark.parametrize(
    ("optimize", "handler", "wish", "tried"),
    [
        pytest.param(("auto",), "mine.py", "asked", True, id="asked for"),
        pytest.param(("auto",), "mine.py", "never", True, id="asked for, to tell that it is never done"),
        pytest.param(None, "image_classifier", "built-in", True, id="nothing said, built in"),
        pytest.param(None, "image_classifier", "asked", False, id="the daemon waits to be asked"),
        pytest.param(None, "image_classifier", "never", False, id="the daemon never tries"),
        pytest.param(None, "text_classifier", "built-in", False, id="texts have any length: each would be compiled"),
        pytest.param(None, "object_detector", "built-in", False, id="no defaults, so no measure of drift"),
        pytest.param(None, "mine.py", "built-in", False, id="a handler of the user's"),
        pytest.param((), "image_classifier", "built-in", False, id="no names, which pins the defaults"),
        pytest.param(("none",), "image_classifier", "built-in", False, id="none"),
        pytest.param(("compile",), "image_classifier", "built-in", False, id="names"),
    ],
)
def test_who_is_tried(optimize: tuple[str, ...] | None, handler: str, wish: str, tried: bool) -> None:
    assert is_tried(optimize, handler, wish) is tried


def test_onnx_runtime_is_tried_where_it_is_installed() -> None:
    sets = sets_to_try(defaults=False, compiler=True, onnxruntime=True, lossy=("bf16", "scaled_decode"))

    assert [",".join(names) for names in sets] == [
        "", "compile", "onnxruntime", "bf16", "bf16,compile", "scaled_decode", "scaled_decode,compile",
        "scaled_decode,onnxruntime", "scaled_decode,bf16", "scaled_decode,bf16,compile",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("compiler", "lossy", "sets"),
    [
        pytest.param(True, (), ["", "compile"], id="lossless"),
        pytest.param(False, (), [], id="nothing without a compiler"),
        pytest.param(False, ("bf16",), ["", "bf16"], id="bf16 needs none"),
        pytest.param(True, ("bf16", "int8"), ["", "compile", "bf16", "bf16,compile", "int8"], id="as tolerated"),
        pytest.param(
            True, ("scaled_decode",), ["", "compile", "scaled_decode", "scaled_decode,compile"], id="another stage"
        ),
    ],
)
def test_which_sets_are_tried(compiler: bool, lossy: tuple[str, ...], sets: list[str]) -> None:
    def tried(*, defaults: bool) -> list[str]:
        return [",".join(names) for names in sets_to_try(defaults=defaults, compiler=compiler, lossy=lossy)]

    assert tried(defaults=False) == sets
    assert tried(defaults=True) == ["", "none", *sets[1:]]  # the defaults may be a loss here


@pytest.mark.parametrize(
    ("given", "lossy"),
    [
        pytest.param({"bf16": 0.02, "fold": 0.1}, {"bf16": 0.02}, id="what is beyond rounding"),
        pytest.param({"int8": 1, "bf16": 0}, {"int8": 1.0}, id="no drift tolerated is not allowed"),
        pytest.param({"int8": "much"}, {}, id="no number: the worker reports it"),
        pytest.param(0.02, {}, id="no mapping"),
        pytest.param(None, {}, id="nothing"),
    ],
)
def test_the_tolerances_allow_what_is_beyond_rounding(given: object, lossy: dict[str, float]) -> None:
    assert lossy_of({"optimizeTolerance": given}) == lossy
