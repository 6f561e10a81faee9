"""Answers to inference requests: read from a model, written for a client."""

import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.steps import finish
from tsctl.daemon.extensions.oip.answers import write_answer
from tsctl.daemon.extensions.oip.requests import parse_steps
from tsctl.daemon.extensions.tensors.answers import parse_answer
from tsctl.daemon.extensions.tensors.elements import pack, size_of, unpack
from tsctl.daemon.extensions.tensors.forms import InferAnswer, Tensor
from tsctl.daemon.model_settings.declarations import DATATYPES

X, Y = Tensor("x", "FP32", (2,), pack("FP32", [1.5, -2.0]), {}), Tensor("y", "BYTES", (1,), pack("BYTES", ["é"]), {})
ANSWER = InferAnswer("m", "1.0", "7", {"k": True}, [X, Y])


NUMBERS = [each for each in DATATYPES if each not in ("BOOL", "BYTES")]


@given(st.sampled_from(NUMBERS), st.binary(max_size=40))
def test_any_bits_of_a_number_survive_as_bytes(datatype: str, bits: bytes) -> None:
    count = len(bits) // size_of(datatype)
    made = Tensor("o", datatype, (count,), bits[: count * size_of(datatype)], {})
    answer = InferAnswer("m", "1", "", {}, [made])

    body, length = write_answer(answer, lambda name: True)
    assert parse_answer(body, length) == answer
    request = body.replace(b'"outputs"', b'"inputs"', 1)  # is as long, less one
    assert length is not None
    assert finish(parse_steps(request, length - 1)).inputs == [made]


@pytest.mark.parametrize("datatype", ["FP16", "BF16", "INT16", "UINT16", "INT8", "UINT8"])
def test_all_finite_numbers_of_16_bits_survive_as_json(datatype: str) -> None:
    letter = "B" if size_of(datatype) == 1 else "H"
    words = [struct.pack(f"<{letter}", bits) for bits in range(256 ** size_of(datatype))]
    finite = [word for word in words if all(map(math.isfinite, unpack(datatype, word)))]  # type: ignore[arg-type]
    answer = InferAnswer("m", "1", "", {}, [Tensor("o", datatype, (len(finite),), b"".join(finite), {})])

    assert len(finite) >= 63_000 or letter == "B"
    assert parse_answer(*write_answer(answer, lambda name: False)) == answer


@pytest.mark.parametrize("binary", [(), ("x",), ("x", "y")])
def test_an_answer_is_read_as_it_was_written(binary: tuple[str, ...]) -> None:
    body, length = write_answer(ANSWER, binary.__contains__)

    assert parse_answer(body, length) == ANSWER
    assert (length is None) is (not binary)
    sizes = [each.get("parameters") for each in json.loads(body[:length])["outputs"]]
    assert sizes == [{"binary_data_size": len(each.data)} if each.name in binary else None for each in (X, Y)]
    assert body[length:] == b"".join(bytes(each.data) for each in (X, Y) if each.name in binary) or length is None


def test_an_answer_in_json_is_the_protocols() -> None:
    body, _ = write_answer(ANSWER, lambda name: False)

    assert json.loads(body) == {
        "model_name": "m",
        "model_version": "1.0",
        "id": "7",
        "parameters": {"k": True},
        "outputs": [
            {"name": "x", "datatype": "FP32", "shape": [2], "data": [1.5, -2.0]},
            {"name": "y", "datatype": "BYTES", "shape": [1], "data": ["é"]},
        ],
    }


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"3", "does not follow the Open Inference Protocol: Expected `object`"),
        (b'{"predictions": [1]}', "required field `outputs`"),
        (b'{"outputs": [{"name": "o", "shape": [3], "datatype": "INT8", "data": [1]}]}', "1 elements for output o"),
    ],
)
def test_what_is_no_answer_says_why(body: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_answer(body)


@pytest.mark.parametrize(
    ("more", "length", "reason"),
    [
        (b"", 10**6, "said to have 1000000 bytes of JSON; it has "),
        (b"", -1, "said to have -1 bytes of JSON; it has "),
        (b"123456789", None, "9 bytes follow the last output"),
    ],
)
def test_an_answer_whose_length_is_wrong_says_so(more: bytes, length: int | None, reason: str) -> None:
    body, right = write_answer(ANSWER, lambda name: True)

    with pytest.raises(ValueError, match=reason):
        parse_answer(body + more, right if length is None else length)


def test_an_output_may_have_any_parameter() -> None:
    output = X._replace(parameters={"classification": "cat", "shared_memory_region": "r", "": 1})
    answer = ANSWER._replace(parameters={"": 2**64 - 1}, outputs=[output])

    assert parse_answer(*write_answer(answer, lambda name: False)) == answer


def test_an_output_in_the_arena_is_written_from_there() -> None:
    place = Arena(1 << 16).take(8)
    assert place is not None
    place.view[:] = X.data  # type: ignore[assignment]

    assert write_answer(ANSWER._replace(outputs=[X._replace(data=place)]), lambda name: True) == write_answer(
        ANSWER._replace(outputs=[X]), lambda name: True
    )


@pytest.mark.parametrize(
    "output",
    [Tensor("o", "FP64", (1,), struct.pack("<d", math.nan), {}), Tensor("o", "BYTES", (1,), b"\x01\0\0\0\xff", {})],
    ids=["NaN", "bytes"],
)
def test_what_json_cannot_hold_is_named_and_sent_as_bytes(output: Tensor) -> None:
    answer = InferAnswer("m", "1", "", {}, [output])

    with pytest.raises(ValueError, match=r"o has .*: use binary data"):
        write_answer(answer, lambda name: False)
    assert parse_answer(*write_answer(answer, lambda name: True)) == answer
