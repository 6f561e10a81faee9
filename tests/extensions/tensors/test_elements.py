"""Elements of tensors between values and bytes."""

import math
import struct

import pytest

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.extensions.tensors.elements import LETTERS, Element, pack, size_of, unpack
from tsctl.daemon.model_settings.declarations import DATATYPES

LIMITS: dict[str, list[Element]] = {
    "BOOL": [True, False],
    **{f"UINT{bits}": [0, 2**bits - 1] for bits in (8, 16, 32, 64)},
    **{f"INT{bits}": [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] for bits in (8, 16, 32, 64)},
    "FP16": [65504.0, -0.5, math.inf], "FP32": [1.5, -math.inf], "FP64": [0.1, 1e300],
    "BF16": [1.0, -2.5, math.inf], "BYTES": [b"", b"\x00\xff", b"text"],
}  # fmt: skip


@pytest.mark.parametrize("datatype", DATATYPES)
def test_the_limits_of_each_datatype_come_back_unchanged(datatype: str) -> None:
    assert unpack(datatype, memoryview(pack(datatype, LIMITS[datatype]))) == LIMITS[datatype]
    assert (pack(datatype, []), unpack(datatype, b"")) == (b"", [])


@pytest.mark.parametrize(
    ("datatype", "value"),
    [
        ("UINT8", 300), ("UINT8", -1), ("INT32", 1.5), ("INT32", True), ("INT64", 2**63), ("FP16", 1e6), ("FP32", 1e39),
        ("BF16", 3.4e38), ("FP64", 10**400), ("FP64", "1"), ("BOOL", 1), ("BYTES", 1), ("BYTES", "\ud800"),
    ],
)  # fmt: skip
def test_a_value_that_the_datatype_cannot_hold_is_refused(datatype: str, value: Element) -> None:
    with pytest.raises(BadRequest, match=datatype):
        pack(datatype, [value])
    assert unpack("BYTES", pack("BYTES", ["é"])) == ["é".encode()]
    with pytest.raises(BadRequest, match="Unknown datatype: INT128; use one of BOOL"):
        size_of("INT128")


@pytest.mark.parametrize("datatype", [name for name in (*LETTERS, "BF16") if size_of(name) > 1])
def test_bytes_that_end_within_an_element_are_refused(datatype: str) -> None:
    with pytest.raises(BadRequest, match="not a whole number"):
        unpack(datatype, b"\x00" * (size_of(datatype) + 1))


@pytest.mark.parametrize("data", [b"\x01", b"\x01\x00\x00\x00", b"\xff\xff\xff\xffabc", b"\x00\x00\x00\x00\x00"])
def test_an_element_of_bytes_that_ends_after_its_tensor_is_refused(data: bytes) -> None:
    with pytest.raises(BadRequest, match="ends after the tensor"):
        unpack("BYTES", data)


@pytest.mark.parametrize(("word", "half"), [(0x3F808000, 0x3F80), (0x3F818000, 0x3F82), (0x3F808001, 0x3F81)])
def test_bf16_rounds_to_the_nearest_even(word: int, half: int) -> None:
    value = struct.unpack("<f", struct.pack("<I", word))[0]
    assert pack("BF16", [value]) == struct.pack("<H", half)
    assert str(unpack("BF16", pack("BF16", [math.nan]))) == "[nan]"
