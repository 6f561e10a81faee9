"""The Open Inference Protocol over gRPC: metadata, readiness and inference, under both names of its service."""

import struct
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.grpc.client import GrpcHouse, grpc_house, jobs_of
from tsctl.daemon.core.arena import COPIED_AT_ONCE, Arena, Lease
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Piece, Reply
from tsctl.daemon.core.places import pages
from tsctl.daemon.core.steps import finish
from tsctl.daemon.extensions.grpc.oip import SERVICES
from tsctl.daemon.extensions.grpc.protos import messages
from tsctl.daemon.extensions.grpc.protos.messages import message_class, request_class
from tsctl.daemon.extensions.grpc.tensor_contents import read_steps
from tsctl.daemon.extensions.tensors.elements import pack
from tsctl.handlers.wire import Declared, Input

pytestmark = pytest.mark.slow  # a real server and client
OIP = SERVICES[0]


def message(word: str, **fields: Any) -> Any:
    return message_class(f"inference.{word}Request")(**fields)


def infer(datatype: str = "INT32", shape: Any = (2,), raw: bytes | None = None, **contents: Any) -> Any:
    tensor: dict[str, Any] = {"name": "a", "datatype": datatype, "shape": shape}
    if contents:
        tensor["contents"] = contents
    request = message("ModelInfer", model_name="m", id="7", inputs=[tensor])
    if raw is not None:
        request.raw_input_contents.append(raw)
    return request


@pytest.mark.parametrize(
    ("datatype", "contents"),
    [
        ("INT32", {"int_contents": [7, -1] * 20_000}),
        ("INT64", {"int64_contents": [5] * 40_000}),
        ("FP32", {"fp32_contents": [0.5] * 40_000}),
        ("BYTES", {"bytes_contents": [b"", b"abc"] * 20_000}),
    ],
)
def test_large_typed_contents_are_made_where_they_stay(datatype: str, contents: Any) -> None:
    arena = Arena(2**22)
    (values,) = contents.values()
    request = request_class("inference.ModelInferRequest").FromString(
        infer(datatype, (len(values),), **contents).SerializeToString()
    )

    (tensor,) = finish(read_steps(request, arena.take)).inputs

    expected = pack(datatype, values)
    assert isinstance(tensor.data, Lease) and bytes(tensor.data) == expected
    assert arena.used == pages(len(expected))


def test_large_contents_are_read_into_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(name: str) -> Any:
        made.append(name)
        return message_class(name)

    contents = [7, 300] * 20_000
    asked = infer("INT32", (len(contents),), int_contents=contents)
    request = request_class("inference.ModelInferRequest").FromString(asked.SerializeToString())
    monkeypatch.setattr(messages, "message_class", counted)

    slices = len(list(read_steps(request)))

    assert slices > 2
    assert made == ["inference.InferTensorContents"]


def test_numbers_that_are_written_as_another_kind_are_not_there() -> None:
    contents = bytes((2 << 3 | 5,)) + struct.pack("<i", 7)  # an int_contents of four bytes; protobuf skips it, too
    request = request_class("inference.ModelInferRequest").FromString(infer(shape=(1,)).SerializeToString())
    request.inputs[0].contents = contents * 10_000

    with pytest.raises(BadRequest, match="0 elements in int_contents for input a"):
        list(read_steps(request))


def test_large_floats_are_copied_in_slices() -> None:
    arena, count = Arena(2**23), 2 * COPIED_AT_ONCE // 4 + 1
    message = infer("FP32", (count,), fp32_contents=[0.5] * count)
    request = request_class("inference.ModelInferRequest").FromString(message.SerializeToString())

    slices, (tensor,) = len(list(read_steps(request, arena.take))), finish(read_steps(request, arena.take)).inputs

    assert slices >= 2
    assert bytes(tensor.data) == pack("FP32", [0.5] * count)


def test_the_parameters_of_equal_requests_have_one_order() -> None:
    kind, read = message_class("inference.ModelInferRequest"), request_class("inference.ModelInferRequest").FromString
    each = {name: kind(parameters={name: {"int64_param": 1}}).SerializeToString() for name in ("k2", "k3", "k4")}

    found = [finish(read_steps(read(b"".join(each[name] for name in names)))) for names in permutations(each)]

    assert {tuple(request.parameters) for request in found} == {("k2", "k3", "k4")}, "a cache hashes them so"


def test_large_raw_contents_are_where_the_worker_reads_them() -> None:
    arena, data = Arena(2**22), bytes(range(256)) * 1024
    message = infer("INT32", (len(data) // 4,), raw=data)
    request = request_class("inference.ModelInferRequest").FromString(message.SerializeToString())

    (tensor,) = finish(read_steps(request, arena.take)).inputs

    assert isinstance(tensor.data, Lease) and bytes(tensor.data) == data


async def finals(made: GrpcHouse, *, empty: bool, pieces: list[bytes]) -> list[tuple[bool, int]]:
    """Ask once in a stream; return of each answer whether it says that it is the last, and its outputs."""
    made.house.engine.batch_time = lambda _size: 10.0
    made.house.engine.answer = lambda _job: Reply(200, b"")
    model = await made.house.serve("m")
    model.learn(Declared([Input("text", "text")], batches=False, streams=True), ())
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "contents": {"bytes_contents": [b"a"]}}
    request = message("ModelInfer", model_name="m", inputs=[tensor])
    if empty:
        request.parameters["triton_enable_empty_final_response"].bool_param = True
    stream = made.call("ModelStreamInfer", iter([request]), OIP)
    await made.house.until(lambda: model.running)
    (job,) = jobs_of(made)
    for piece in pieces:
        job.stream(Piece(200, piece))
    made.house.clock.advance(10.0)
    found = []
    while (answer := await made.settled(stream.read())) is not made.grpc.aio.EOF:
        told = answer.infer_response
        found.append((told.parameters["triton_final_response"].bool_param, len(told.outputs)))
    return found


@pytest.mark.parametrize(
    ("pieces", "empty", "expected"),
    [
        ([b"a", b"b"], False, [(False, 1), (False, 1)]),
        ([b"a", b"b"], True, [(False, 1), (False, 1), (True, 0)]),
    ],
    ids=["pieces", "pieces, and an end that is asked for"],
)
async def test_a_stream_says_which_answer_is_the_last(
    tmp_path: Path, pieces: list[bytes], empty: bool, expected: list[tuple[bool, int]]
) -> None:
    async with grpc_house(tmp_path) as made:
        assert await finals(made, empty=empty, pieces=pieces) == expected
