"""Tensors of every datatype, drawn by chance."""

import math
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tsctl.daemon.extensions.tensors.elements import size_of
from tsctl.daemon.model_settings.declarations import DATATYPES

WIDTHS = {"FP16": 16, "FP32": 32, "FP64": 64}


def elements(datatype: str) -> st.SearchStrategy[Any]:
    if datatype == "BOOL":
        return st.booleans()
    if datatype == "BYTES":
        return st.text(st.characters(codec="utf-8"), max_size=5)
    if datatype == "BF16":
        return st.sampled_from([0.0, -0.0, 1.0, -2.5, 256.0, 2.0**100])
    if datatype in WIDTHS:
        return st.floats(width=WIDTHS[datatype], allow_nan=False, allow_infinity=False)  # type: ignore[arg-type]
    bits = 8 * size_of(datatype)
    signed = datatype.startswith("INT")
    return st.integers(-(2 ** (bits - 1)) if signed else 0, 2 ** (bits - 1 if signed else bits) - 1)


def nested(values: Sequence[Any], shape: Sequence[int]) -> Any:
    """Return nested lists of a shape; a single value for []."""
    if not shape:
        return values[0]
    size = math.prod(shape[1:])
    return [nested(values[at * size : (at + 1) * size], shape[1:]) for at in range(shape[0])]


@st.composite
def tensors(draw: st.DrawFn) -> tuple[str, list[int], list[Any]]:
    datatype = draw(st.sampled_from(DATATYPES))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    size = math.prod(shape)
    return datatype, shape, draw(st.lists(elements(datatype), min_size=size, max_size=size))
