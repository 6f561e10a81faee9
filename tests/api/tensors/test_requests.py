"""Inference requests in JSON, and with the tensors' bytes after the JSON."""

import json
import math
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.api.tensors.answers import values_of
from tsctl.daemon.api.tensors.elements import pack, size_of, unpack
from tsctl.daemon.api.tensors.forms import InferRequest, Tensor
from tsctl.daemon.api.tensors.requests import parse_steps
from tsctl.daemon.api.tensors.steps import finish
from tsctl.daemon.core.arena import Arena, Lease
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.model_settings.declarations import DATATYPES

WIDTHS = {"FP16": 16, "FP32": 32, "FP64": 64}


def written(*inputs: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"inputs": list(inputs), **more}).encode()


def tensor(data: Any = None, datatype: str = "INT32", shape: Any = (2,), name: str = "a", **parameters: Any) -> Any:
    document = {"name": name, "datatype": datatype, "shape": list(shape)}
    document |= {} if data is None else {"data": data}
    return document | ({"parameters": parameters} if parameters else {})


def only(request: InferRequest) -> Tensor:
    (found,) = request.inputs
    return found


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


@given(tensors())
def test_every_datatype_is_the_same_flat_nested_and_as_bytes(drawn: tuple[str, list[int], list[Any]]) -> None:
    datatype, shape, values = drawn
    data = pack(datatype, values)
    made = Tensor("a", datatype, tuple(shape), data, {})

    flat = only(finish(parse_steps(written(tensor(values, datatype, shape)))))
    deep = only(finish(parse_steps(written(tensor(nested(values, shape) if shape else values, datatype, shape)))))
    head = written(tensor(None, datatype, shape, binary_data_size=len(data)))
    binary = only(finish(parse_steps(head + data, len(head))))

    assert flat == deep == binary == made
    assert pack(datatype, values_of(made)) == data


def test_ids_parameters_and_wanted_outputs_are_kept() -> None:
    request = finish(
        parse_steps(
            written(
                tensor([1, 2], note="x"),
                id="42",
                parameters={"priority": 3, "binary_data_output": True},
                outputs=[{"name": "o", "parameters": {"binary_data": False, "k": "v"}}, {"name": "p"}],
            )
        )
    )

    assert (request.id, request.parameters, request.binary) == ("42", {"priority": 3}, True)
    assert only(request).parameters == {"note": "x"}
    assert [(each.name, each.binary, each.parameters) for each in request.outputs] == [
        ("o", False, {"k": "v"}),
        ("p", True, {}),
    ]


def test_absent_and_null_members_are_the_same() -> None:
    nothing = finish(parse_steps(written(tensor([1, 2]), id=None, parameters=None, outputs=None)))

    assert nothing == finish(parse_steps(written(tensor([1, 2]))))
    assert (nothing.id, nothing.parameters, nothing.outputs, nothing.binary) == ("", {}, [], False)


def test_several_binary_inputs_follow_in_their_order() -> None:
    head = written(
        tensor(None, "UINT8", (2,), "a", binary_data_size=2),
        tensor([5], "INT32", (1,), "b"),
        tensor(None, "UINT8", (1,), "c", binary_data_size=1),
    )

    a, b, c = finish(parse_steps(head + b"\x01\x02\x03", len(head))).inputs

    assert (a.data, unpack("INT32", bytes(b.data)), c.data) == (b"\x01\x02", [5], b"\x03")


def test_the_bytes_of_a_large_tensor_stay_in_the_arena() -> None:
    arena = Arena(1 << 20)
    data = struct.pack("<1000f", *range(1000))
    head = written(tensor(None, "FP32", (1000,), binary_data_size=len(data)))
    lease = arena.take(len(head) + len(data))
    assert lease is not None
    lease.view[:] = head + data

    found = only(finish(parse_steps(lease, len(head)))).data

    assert not isinstance(found, bytes)
    assert (found.offset, len(found)) == (lease.offset + len(head), len(data))


def test_empty_tensors_do_not_copy_the_body() -> None:
    arena = Arena(1 << 20)
    inputs = [tensor(None, "FP32", (0, 3), f"i{number}", binary_data_size=0) for number in range(3)]
    head = written(*inputs, tensor(None, "UINT8", (9,), binary_data_size=9))
    lease = arena.take(len(head) + 9)
    assert lease is not None
    lease.view[:] = head + bytes(9)
    copied = []

    class Watched(Lease):
        def __bytes__(self) -> bytes:
            copied.append(self)
            return super().__bytes__()

    *empty, full = finish(parse_steps(Watched(lease._place, lease.offset, lease.length), len(head))).inputs

    assert [each.data for each in empty] == [b""] * 3
    assert bytes(full.data) == bytes(9)
    assert copied == []


def test_white_space_between_the_lists_of_data_changes_nothing() -> None:
    body = written(tensor([[1], [2]], shape=(2, 1)))

    assert finish(parse_steps(body.replace(b"[[1]", b"[" + b"\n\t " * 1000 + b"[1]"))) == finish(parse_steps(body))


def test_a_parameter_may_have_the_name_of_an_extension_elsewhere() -> None:
    request = finish(
        parse_steps(written(tensor([1, 2], classification="cat"), parameters={"shared_memory_region": "r"}))
    )

    assert (only(request).parameters, request.parameters) == ({"classification": "cat"}, {"shared_memory_region": "r"})


INT = tensor([1, 2])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"", "The body is no inference request", id="nothing"),
        pytest.param(b"{", "The body is no inference request", id="cut off"),
        pytest.param(b"[]", "no inference request in JSON: Expected `object`", id="a list"),
        pytest.param(b"{}", "required field `inputs`", id="no inputs"),
        pytest.param(b'{"inputs": [{"name": "\xff"}]}', "The body is no inference request", id="no UTF-8"),
        pytest.param(b"[" * 100_000, "should be an object", id="deep"),
        pytest.param(written({"name": "a"}), r"`shape` - at `\$.inputs\[0\]`", id="no shape"),
        pytest.param(written(tensor([300], "UINT8", (1,))), "data of input a: .* out of the range", id="300 as UINT8"),
        pytest.param(written(tensor([1.5], "INT32", (1,))), "data of input a is not INT32", id="1.5 as INT32"),
        pytest.param(written(tensor([2**63], "INT64", (1,))), "data of input a: .* out of the range", id="2**63"),
        pytest.param(written(tensor([10**400], "INT64", (1,))), "data of input a", id="a very large number"),
        pytest.param(written(tensor([1e300], "FP32", (1,))), "data of input a: .* out of the range", id="1e300"),
        pytest.param(written(tensor([True], "INT8", (1,))), "data of input a is not INT8", id="a truth as a number"),
        pytest.param(written(tensor([1], "BOOL", (1,))), "data of input a is not BOOL", id="a number as a truth"),
        pytest.param(written(tensor([1], "BYTES", (1,))), "data of input a is not BYTES", id="a number as BYTES"),
        pytest.param(written(tensor([math.nan], "FP32", (1,))), "no inference request", id="NaN"),
        pytest.param(written(tensor([1], "int32", (1,))), "Unknown datatype: int32; use one of", id="numpy's word"),
        pytest.param(written(tensor([1], shape=(2,))), r"1 elements for input a; its shape \[2\] needs", id="too few"),
        pytest.param(written(tensor([1], shape=(-1,))), "expected dimensions of at least 0", id="a negative dimension"),
        pytest.param(written(tensor([1], shape=(2**31, 2**31))), "needs 4611686018427387904", id="a lying shape"),
        pytest.param(written(tensor([1], shape=[1] * 33)), "has 33 dimensions; at most 32", id="many dimensions"),
        pytest.param(written(tensor([[1], [2, 3]], shape=(2, 1))), "has a list of 2 elements, which", id="ragged"),
        pytest.param(written(tensor([[1, 2]], shape=(2, 1))), "has a list of 1 elements, which", id="nested otherwise"),
        pytest.param(written(tensor([[1], [2]])), "has 2 dimensions; its shape", id="deeper than the shape"),
        pytest.param(written(tensor([1, [2]])), "is not INT32", id="half nested"),
        pytest.param(written(tensor(eval("[" * 40 + "]" * 40))), "more than 32 dimensions", id="deep data"),
        pytest.param(written(tensor("12")), "is not INT32", id="a text as data"),
        pytest.param(written(tensor(name="A")), "The input A has neither `data` nor", id="no data"),
        pytest.param(written(tensor(shared_memory_region="r")), "does not serve shared memory", id="shared memory"),
        pytest.param(written(INT, id=7), "Expected `str", id="a number as id"),
        pytest.param(written(INT, parameters={"a": []}), "no inference request", id="a list as parameter"),
        pytest.param(written(INT, parameters={"binary_data_output": 1}), "expected true or false", id="1 for true"),
        pytest.param(
            written(INT, outputs=[{"name": "o", "parameters": {"classification": 3}}]), "classification", id="classes"
        ),
        pytest.param(written(*[INT] * 1001), "more than 1000 inputs", id="many inputs"),
        pytest.param(written(INT, INT), "Input a is given twice", id="an input twice"),
        pytest.param(written(INT | {"name": ""}), "length >= 1", id="no name"),
        pytest.param(written(INT, parameters={"k": 2**64}), "parameter k of the request is a whole", id="65 bits"),
        pytest.param(written(tensor([1, 2], k=-(2**63) - 1)), "parameter k of input a is", id="65 bits of an input"),
        pytest.param(written(tensor([], shape=(0, 2**63))), "<= 9223372036854775807 - at", id="a vast dimension"),
        pytest.param(written(tensor([1], shape=[10**4000] * 32)), "shape", id="a vast shape"),
        pytest.param(written(tensor([], shape=(0, 2**30, 4))), "would be more than 2147483648", id="vast but for a 0"),
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(BadRequest, match=reason):
        finish(parse_steps(body))


@pytest.mark.parametrize(
    ("head", "rest", "reason"),
    [
        pytest.param(tensor(shape=(2,), binary_data_size=8), b"1234", "only 4 bytes are left", id="too few bytes"),
        pytest.param(tensor(shape=(1,), binary_data_size=4), b"12345", "1 bytes follow the last", id="too many bytes"),
        pytest.param(tensor(shape=(2,), binary_data_size=4), b"1234", "4 bytes for input a; its", id="half of it"),
        pytest.param(tensor(shape=(2**40,), binary_data_size=4), b"1234", "needs 4398046511104", id="a lying shape"),
        pytest.param(tensor([1], shape=(1,), binary_data_size=4), b"1234", "has both `data` and", id="both"),
        pytest.param(tensor(shape=(1,), binary_data_size=-4), b"", "expected a number of bytes", id="a negative size"),
        pytest.param(tensor(shape=(1,), binary_data_size=True), b"1", "expected a number of", id="a truth as size"),
        pytest.param(
            tensor(None, "BYTES", (1,), binary_data_size=5), b"\x09\0\0\0x", "BYTES elements: Element 0", id="too long"
        ),
        pytest.param(
            tensor(None, "BYTES", (2,), binary_data_size=9), b"\5\0\0\0abcde", "1 elements for input a", id="one of two"
        ),
        pytest.param(
            tensor(None, "BYTES", (2**40,), binary_data_size=4), bytes(4), "needs at least 4398", id="2**40 texts"
        ),
        pytest.param(tensor(shape=(1,), binary_data_size="x" * 9999), b"12", "is x{100}…; expected", id="a long size"),
    ],
)  # fmt: skip
def test_bytes_that_contradict_the_json_are_refused(head: Any, rest: bytes, reason: str) -> None:
    body = written(head)

    with pytest.raises(BadRequest, match=reason):
        finish(parse_steps(body + rest, len(body)))


@pytest.mark.parametrize("length", [-1, 3, 10**400])
def test_a_length_of_json_that_the_body_cannot_have_is_refused(length: int) -> None:
    with pytest.raises(BadRequest, match=rf"said to have {length} bytes; the body has 2"):
        finish(parse_steps(b"{}", length))


@given(st.sampled_from(["name", "datatype", "parameters", "outputs"]), st.sampled_from(["x", "\\", "é", "9"]))
def test_a_refusal_is_short_whatever_it_is_about(member: str, character: str) -> None:
    long: Any = character * 1_000_000
    more = {"parameters": {"binary_data_output": long}, "outputs": [{"name": long}]}
    body = written(INT | ({} if member in more else {member: long}), **{k: v for k, v in more.items() if k == member})

    with pytest.raises(BadRequest) as refused:
        finish(parse_steps(body))
    assert len(str(refused.value)) < 2000
