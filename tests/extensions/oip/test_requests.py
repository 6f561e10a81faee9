"""Inference requests in JSON, and with the tensors' bytes after the JSON."""

import json
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extensions.tensors.drawn import nested, tensors
from tests.extensions.tensors.test_every_way import model_of, row_of
from tests.kit.said import reason, said_in
from tsctl.daemon.core.arena import Arena, Lease
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import finish
from tsctl.daemon.extensions.oip.answers import values_of
from tsctl.daemon.extensions.oip.requests import parse_steps
from tsctl.daemon.extensions.tensors.elements import pack, unpack
from tsctl.daemon.extensions.tensors.forms import InferRequest, Tensor
from tsctl.daemon.extensions.tensors.prepared_request import prepare
from tsctl.handlers.tensor_heads import ElementHeads
from tsctl.handlers.tensors.numbers import fields_of


def written(*inputs: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"inputs": list(inputs), **more}).encode()


def tensor(data: Any = None, datatype: str = "INT32", shape: Any = (2,), name: str = "a", **parameters: Any) -> Any:
    document = {"name": name, "datatype": datatype, "shape": list(shape)}
    document |= {} if data is None else {"data": data}
    return document | ({"parameters": parameters} if parameters else {})


def only(request: InferRequest) -> Tensor:
    (found,) = request.inputs
    return found


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


@settings(max_examples=30)
@given(tensors())
def test_the_json_that_a_worker_makes_of_a_request_is_the_request(drawn: tuple[str, list[int], list[Any]]) -> None:
    datatype, shape, values = drawn
    tensor = {"name": "a", "datatype": datatype, "shape": shape, "data": values, "parameters": {"p": 1}}
    more = {"id": "7", "parameters": {"k": 1.5}, "outputs": [{"name": "o", "parameters": {"q": "r"}}]}
    request = finish(parse_steps(json.dumps({"inputs": [tensor], **more}).encode()))

    prepared = prepare(model_of(None), request)
    row = row_of(prepared.params, prepared.head)
    assert isinstance(row.infer, ElementHeads)

    assert finish(parse_steps(json.dumps(fields_of(row, row.infer)["body"]).encode())) == request


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


@said_in("refused.txt")
def test_what_is_no_request_is_refused_with_the_reason(body: str) -> str:
    return reason(lambda: finish(parse_steps(body.encode())), BadRequest)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param(b'{"inputs": [{"name": "\xff"}]}', "The body is no inference request", id="no UTF-8"),
        pytest.param(b"[" * 100_000, "should be an object", id="deep"),
        pytest.param(written(*[INT] * 1001), "more than 1000 inputs", id="many inputs"),
        pytest.param(written(tensor([1], shape=[10**4000] * 32)), "shape", id="a vast shape"),
    ],
)
def test_what_is_large_or_no_text_is_refused_too(body: bytes, sentence: str) -> None:
    with pytest.raises(BadRequest, match=sentence):
        finish(parse_steps(body))


@said_in("contradicting.txt")
def test_bytes_that_contradict_the_json_are_refused(told: str) -> str:
    head, _, rest = told.replace("MANY", "x" * 9999).partition(" + ")
    return reason(lambda: finish(parse_steps((head + json.loads(rest)).encode(), len(head))), BadRequest)


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
