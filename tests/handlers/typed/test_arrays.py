"""Arrays from JSON and `.npy` files: exact where they are arrays, a reason where they are not, and never a pickle."""

import io
import json
import pickle
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, complex_number_dtypes, floating_dtypes, integer_dtypes
from typing_extensions import TypeAliasType

from tests.kit.said import reason, said_in
from tsctl.handlers.requests.rows import to_npy
from tsctl.handlers.sdk.errors import UnreadablePayload
from tsctl.handlers.tensor_heads import TensorHead
from tsctl.handlers.typed.annotations import written
from tsctl.handlers.typed.arrays import array_of, array_of_elements, read_npy, tensor_of

Scalar = TypeVar("Scalar")
_alias: Any = TypeAliasType  # NumPy 2.5 makes its `NDArray` so
NEWER: Any = _alias("NDArray", np.ndarray, type_params=(Scalar,))
numbers = arrays(
    floating_dtypes(endianness="?")
    | integer_dtypes(endianness="?")
    | complex_number_dtypes()
    | st.just(np.dtype(bool)),
    array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
)


def header(text: str, version: bytes = b"\x01\x00") -> bytes:
    """Return the beginning of an `.npy` file with this header."""
    encoded = text.encode()
    length = len(encoded).to_bytes(2 if version[0] == 1 else 4, "little")
    return b"\x93NUMPY" + version + length + encoded


@settings(max_examples=30)
@given(array=numbers, fortran=st.booleans())
def test_an_npy_file_is_read_back_as_written(array: np.ndarray[Any, Any], fortran: bool) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.asfortranarray(array) if fortran else array)

    read = read_npy(buffer.getvalue())

    assert read.shape == (np.asfortranarray(array) if fortran else array).shape
    assert read.dtype.isnative
    np.testing.assert_array_equal(read.reshape(array.shape), array)
    assert read.flags.writeable


@settings(max_examples=30)
@given(body=st.binary(max_size=200), inside=st.integers(0, 200))
def test_broken_files_are_refused_and_nothing_else_is_raised(body: bytes, inside: int) -> None:
    whole = to_npy(np.arange(6.0).reshape(2, 3))
    for broken in (b"\x93NUMPY" + body, whole[: inside % len(whole)], whole[:inside] + body + whole[inside:]):
        try:
            read_npy(broken)
        except UnreadablePayload as error:
            assert len(str(error)) < 1000  # noqa: PT017


@said_in("hostile.txt")
def test_a_hostile_header_is_refused_before_memory_is_taken(told: str) -> str:
    head, _, rest = told.partition(" + ")
    return reason(lambda: read_npy(header(head) + rest.encode()), UnreadablePayload)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param(
            header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") + pickle.dumps([1]),
            "holds values of type object; only numbers are read", id="objects, which are pickles",
        ),
        pytest.param(
            header("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775808)}"),
            "header says", id="no values, and a length beyond the machine's",
        ),
        pytest.param(header("(" * 5000), "broken `.npy` header", id="a header of great depth"),
        pytest.param(header(" " * 20_000), "broken `.npy` header", id="a header without end"),
        pytest.param(header("1", b"\x03\x00"), "version 3.0 is not read", id="another version"),
        pytest.param(b"\x93NUMPY", "broken `.npy` header", id="six bytes"),
        pytest.param(to_npy(np.zeros(2)) + b"1", "16 bytes, and 17 bytes follow", id="a byte too many"),
    ],
)  # fmt: skip
def test_a_hostile_file_is_refused_before_memory_is_taken(body: bytes, sentence: str) -> None:
    assert sentence in reason(lambda: read_npy(body), UnreadablePayload)


@pytest.mark.parametrize(
    ("hint", "name"),
    [
        (npt.NDArray[np.float32], "NDArray[float32]"),
        (list[npt.NDArray[np.uint8]], "list[NDArray[uint8]]"),
        (npt.NDArray[Any], "NDArray[Any]"),
        (NEWER[np.float32], "NDArray[float32]"),
        (np.ndarray, "ndarray"),
    ],
)
def test_the_hint_of_an_array_is_told_as_people_write_it(hint: Any, name: str) -> None:
    assert written(hint) == name


def test_fractions_do_not_become_whole_numbers() -> None:
    with pytest.raises(UnreadablePayload, match="expected values of type int64, got float64"):
        array_of(b"[1.5]", np.int64)


@pytest.mark.parametrize(
    ("wanted", "value", "found"),
    [
        (np.floating, b"[1]", np.float64),
        (np.floating, b"[]", np.float64),
        (np.integer, b"[1]", np.int64),
        (np.integer, b"[]", np.int64),
        (np.integer, b"[true]", np.int64),
        (np.integer, b"[1.5]", None),
        (np.number, b"[1]", np.int64),
    ],
)
def test_a_kind_of_numbers_is_the_lists_own_type_or_the_usual_one(wanted: Any, value: bytes, found: Any) -> None:
    if found is None:
        with pytest.raises(UnreadablePayload, match="expected values of type integer, got float64"):
            array_of(value, wanted)
    else:
        assert array_of(value, wanted).dtype == found


@pytest.mark.parametrize("value", [b"[]", b"[[], []]"])
def test_an_empty_list_has_the_type_that_is_wanted_or_that_of_fractions(value: bytes) -> None:
    head = TensorHead("a", "INT64", [0])

    assert [array_of(value, dtype).dtype for dtype in (np.int64, np.uint8, np.bool_)] == [np.int64, np.uint8, np.bool_]
    assert array_of_elements(head, b"", np.int64).dtype == np.int64
    assert (array_of(value).dtype, tensor_of(value).dtype) == (array_of(b"[1.5]").dtype, tensor_of(b"[1.5]").dtype)


@pytest.mark.parametrize(("dtype", "found"), [(np.str_, ["1", "2"]), (np.object_, [1, 2]), (np.complex64, [1, 2])])
def test_numbers_become_what_holds_all_of_them(dtype: Any, found: list[Any]) -> None:
    assert array_of(b"[1, 2]", dtype).tolist() == found


@pytest.mark.parametrize("decode", [lambda value: array_of(value, np.float32), tensor_of])
@pytest.mark.parametrize("value", [[[1.0, -1e300], [2.0, 3.0]], -1e300])
def test_a_number_beyond_the_type_is_refused_and_not_infinite(decode: Any, value: Any) -> None:
    assert reason(lambda: decode(json.dumps(value).encode()), UnreadablePayload) == "-1e+300 is beyond float32"


@pytest.mark.parametrize(
    ("encoded", "dtype", "shown"),
    [
        (b"[[7, 3000000000]]", np.int32, "3000000000 is beyond int32"),
        (b"-129", np.int8, "-129 is beyond int8"),
        (to_npy(np.array([1, 2**63], np.uint64)), np.int64, "9223372036854775808 is beyond int64"),
    ],
)
def test_nor_does_a_whole_number_become_another_one(encoded: bytes, dtype: Any, shown: str) -> None:
    assert reason(lambda: array_of(encoded, dtype), UnreadablePayload) == shown


def test_what_is_infinite_or_nan_in_a_file_stays_so_and_nothing_else_becomes_so() -> None:
    file = to_npy(np.array([np.inf, np.nan, 1.0]))
    refused = reason(lambda: array_of(to_npy(np.array([1e300 + 1j])), np.complex64), UnreadablePayload)

    assert str(array_of(file, np.float32)) == str(np.array([np.inf, np.nan, 1.0]))
    assert refused == "(1e+300+1j) is beyond complex64"


def test_tensors_are_of_torchs_default_type_from_lists_and_of_the_files_type_from_files() -> None:
    fractions, whole = tensor_of(b"[[1.5, 2]]"), tensor_of(b"[1, 2]")
    from_file = tensor_of(to_npy(np.array([[1.5]], order="F")))

    assert (fractions.dtype, fractions.tolist()) == (torch.float32, [[1.5, 2.0]])
    assert (whole.dtype, whole.tolist()) == (torch.int64, [1, 2])
    assert (from_file.dtype, from_file.tolist()) == (torch.float64, [[1.5]])


def test_a_tensor_that_torch_lacks_is_refused() -> None:
    with pytest.raises(UnreadablePayload):
        tensor_of(to_npy(np.array([1.0], np.longdouble)))
