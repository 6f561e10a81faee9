"""What is tried: only where it was asked for, or the handler has defaults and nothing was said."""

import json

import pytest

from tests.kit.said import said_in
from tsctl.daemon.extensions.optimizing.building import lossy_of, sets_to_try
from tsctl.daemon.extensions.optimizing.trials import is_tried


@said_in("tried.txt")
def test_who_is_tried(given: str) -> str:
    optimize, handler, wish = json.loads(given)
    return "tried" if is_tried(None if optimize is None else tuple(optimize), handler, wish) else "no"


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
