"""The Open Inference Protocol over gRPC: metadata, readiness and inference, under both names of its service."""

import json
import struct
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.grpc.client import GrpcHouse, grpc_house, jobs_of
from tests.handlers.tensors.test_arrays import VALUES
from tests.kit.shelf import needs
from tsctl.daemon.api.tensors.elements import pack
from tsctl.daemon.api.tensors.steps import finish
from tsctl.daemon.core.arena import COPIED_AT_ONCE, Arena, Lease
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Piece, Reply
from tsctl.daemon.core.places import pages
from tsctl.daemon.extensions.grpc.oip import SERVICES
from tsctl.daemon.extensions.grpc.protos import messages
from tsctl.daemon.extensions.grpc.protos.messages import message_class, request_class
from tsctl.daemon.extensions.grpc.tensor_contents import read_steps
from tsctl.daemon.model_settings.declarations import DATATYPES
from tsctl.handlers.wire import Declared, Input

pytestmark = pytest.mark.slow  # a real server and client
OIP = SERVICES[0]
DECLARED = """
inputs: [{name: a, datatype: INT32, shape: [-1]}]
outputs: [{name: o, datatype: INT32, shape: [-1]}]
platform: pytorch_eager
"""


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


def answer_of(datatype: str, shape: list[int], data: bytes) -> Reply:
    """The answer of a worker whose one output has these bytes."""
    output = {"name": "o", "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"model_name": "m", "outputs": [output]}).encode()
    return Reply(200, head + data, headers=[("Inference-Header-Content-Length", str(len(head)))])


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


def test_large_raw_contents_are_where_the_worker_reads_them() -> None:
    arena, data = Arena(2**22), bytes(range(256)) * 1024
    message = infer("INT32", (len(data) // 4,), raw=data)
    request = request_class("inference.ModelInferRequest").FromString(message.SerializeToString())

    (tensor,) = finish(read_steps(request, arena.take)).inputs

    assert isinstance(tensor.data, Lease) and bytes(tensor.data) == data


@pytest.mark.parametrize("datatype", DATATYPES)
async def test_raw_contents_of_every_datatype_go_and_come_unchanged(tmp_path: Path, datatype: str) -> None:
    data = pack(datatype, VALUES[datatype])
    config = DECLARED.replace("INT32", datatype)
    async with grpc_house(tmp_path) as made:
        await made.house.serve("m", config=config)
        made.house.engine.answer = lambda job: answer_of(datatype, [2], bytes(job.params[0].value))

        told = await made.settled(made.call("ModelInfer", infer(datatype, raw=data), OIP))

        assert list(told.raw_output_contents) == [data]


@needs("sequences")
@pytest.mark.parametrize("streamed", [False, True])
async def test_the_parameters_of_a_sequence_are_its_headers(tmp_path: Path, streamed: bool) -> None:
    marks = import_module("tsctl.daemon.extensions.sequences.marks")  # mypy finds no import of what has been left out

    async with grpc_house(tmp_path) as made:
        await made.house.serve(
            "m", config=DECLARED + "sequenceBatching: true\nmaxSequenceJobQueueSize: 4\njobQueueSize: 4\n"
        )
        made.house.engine.answer = lambda job: answer_of("INT32", [2], bytes(8))
        requests = [infer(raw=bytes(8)) for _ in range(3)]
        for request, place in zip(requests, ("sequence_start", "", "sequence_end"), strict=True):
            request.parameters["sequence_id"].int64_param = 7
            if place:
                request.parameters[place].bool_param = True

        if streamed:
            stream = made.call("ModelStreamInfer", iter(requests), OIP)
            for _ in requests:
                assert not (await made.settled(stream.read())).error_message
        else:
            for request in requests:
                await made.settled(made.call("ModelInfer", request, OIP))

        assert [marks.read_mark(job.headers) for job in jobs_of(made)] == [
            marks.SequenceMark("7", start=True, end=False, made=False),
            marks.SequenceMark("7", start=False, end=False, made=False),
            marks.SequenceMark("7", start=False, end=True, made=False),
        ]


async def finals(made: GrpcHouse, *, empty: bool = False, pieces: list[bytes]) -> list[tuple[bool, int]]:
    """Ask once in a stream; return of each answer whether it says that it is the last, and its outputs."""
    made.house.engine.batch_time = lambda _size: 10.0
    made.house.engine.answer = lambda _job: Reply(200, b"" if pieces else b"whole")
    model = await made.house.serve("m")
    model.learn(Declared([Input("text", "text")], batches=False, streams=bool(pieces)), ())
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
        ([], False, [(True, 1)]),
        ([b"a", b"b"], False, [(False, 1), (False, 1)]),
        ([b"a", b"b"], True, [(False, 1), (False, 1), (True, 0)]),
    ],
    ids=["one answer", "pieces", "pieces, and an end that is asked for"],
)
async def test_a_stream_says_which_answer_is_the_last(
    tmp_path: Path, pieces: list[bytes], empty: bool, expected: list[tuple[bool, int]]
) -> None:
    async with grpc_house(tmp_path) as made:
        assert await finals(made, empty=empty, pieces=pieces) == expected
