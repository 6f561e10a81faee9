"""The Open Inference Protocol over gRPC: metadata, readiness and inference, under both names of its service."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.grpc.client import GrpcHouse, grpc_house, jobs_of
from tests.extensions.grpc.test_predictions import failure
from tests.handlers.tensors.test_arrays import VALUES
from tsctl.daemon.api.tensors.elements import pack
from tsctl.daemon.api.tensors.steps import finish
from tsctl.daemon.core.arena import COPIED_AT_ONCE, Arena, Lease
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Param, Piece, Reply
from tsctl.daemon.core.places import pages
from tsctl.daemon.extensions.grpc.oip import SERVICES
from tsctl.daemon.extensions.grpc.protos import messages
from tsctl.daemon.extensions.grpc.protos.messages import message_class, request_class
from tsctl.daemon.extensions.grpc.tensor_contents import read_steps
from tsctl.daemon.extensions.sequences.marks import SequenceMark, read_mark
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


async def ask(made: GrpcHouse, word: str, **fields: Any) -> Any:
    return await made.settled(made.call(word, message(word, **fields), OIP))


@pytest.mark.parametrize("service", SERVICES)
async def test_both_names_of_the_service_answer(tmp_path: Path, service: str) -> None:
    async with grpc_house(tmp_path) as made:
        package = service.rpartition(".")[0]
        request = message_class(f"{package}.ServerLiveRequest")()

        assert (await made.settled(made.call("ServerLive", request, service))).live


async def test_a_models_configuration_and_statistics_are_those_of_triton(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        await made.house.serve("m", config=DECLARED)
        made.house.engine.answer = lambda job: answer_of("INT32", [2], bytes(8))
        await made.settled(made.call("ModelInfer", infer(raw=bytes(8)), OIP))

        config = (await ask(made, "ModelConfig", name="m")).config
        assert (config.name, config.platform, config.max_batch_size) == ("m", "pytorch_eager", 0)
        assert [(each.name, each.data_type, list(each.dims)) for each in config.input] == [("a", 8, [-1])]  # TYPE_INT32
        assert [(each.name, each.data_type, list(each.dims)) for each in config.output] == [("o", 8, [-1])]
        for fields in ({}, {"name": "m"}, {"name": "m", "version": "1.0"}):
            (found,) = (await ask(made, "ModelStatistics", **fields)).model_stats
            assert (found.name, found.version, found.inference_count) == ("m", "1.0", 1)
            counted = found.inference_stats
            assert (counted.success.count, counted.fail.count) == (1, 0)
            # perf_analyzer ends where these differ.
            assert counted.compute_input.count == counted.compute_infer.count == counted.compute_output.count
        assert (await failure(made, made.call("ModelConfig", message("ModelConfig", name="n"), OIP)))[0] == "NOT_FOUND"


async def test_readiness_and_metadata_are_those_of_http(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        await made.house.serve("m", config=DECLARED)
        await made.house.serve("idle", workers=0)

        assert not (await ask(made, "ServerReady")).ready
        assert (await ask(made, "ModelReady", name="m")).ready
        assert not (await ask(made, "ModelReady", name="idle", version="1.0")).ready
        assert (await ask(made, "ServerMetadata")).name == "tsctl"
        told = await ask(made, "ModelMetadata", name="m")
        assert (told.name, list(told.versions), told.platform) == ("m", ["1.0"], "pytorch_eager")
        assert [(each.name, each.datatype, list(each.shape)) for each in told.inputs] == [("a", "INT32", [-1])]
        assert [each.name for each in told.outputs] == ["o"]


async def test_typed_contents_are_answered_with_typed_contents(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        await made.house.serve("m", config=DECLARED)
        made.house.engine.answer = lambda job: answer_of("INT32", [1], struct.pack("<i", -5))

        told = await made.settled(made.call("ModelInfer", infer(int_contents=[1, -1]), OIP))

        (job,) = jobs_of(made)
        assert list(job.params) == [Param("a", "", struct.pack("<2i", 1, -1))]
        assert job.infer is not None
        assert (told.model_name, told.model_version, told.id) == ("m", "1.0", "7")
        assert (list(told.outputs[0].contents.int_contents), list(told.raw_output_contents)) == ([-5], [])


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


async def test_a_model_that_declares_nothing_gets_json_and_answers_with_it(tmp_path: Path) -> None:
    output = {"name": "o", "datatype": "BYTES", "shape": [1], "data": ["é"]}
    async with grpc_house(tmp_path) as made:
        await made.house.serve("m")
        made.house.engine.answer = lambda job: Reply(200, json.dumps({"outputs": [output]}).encode())

        told = await made.settled(made.call("ModelInfer", infer("BYTES", (1,), bytes_contents=[b"x"]), OIP))

        assert list(told.outputs[0].contents.bytes_contents) == ["é".encode()]
        (job,) = jobs_of(made)
        assert [bytes(each.value) for each in job.params[1:]] == [b"\x01\0\0\0x"]


async def test_an_answer_that_is_none_of_the_protocol_is_an_error(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        await made.house.serve("m")
        made.house.engine.answer = lambda job: Reply(200, b"[1]")

        code, details = await failure(made, made.call("ModelInfer", infer(int_contents=[1, 2]), OIP))

        assert code == "INTERNAL"
        assert "does not follow the Open Inference Protocol" in details


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        pytest.param(infer(int_contents=[1]), "1 elements in int_contents for input a", id="too few"),
        pytest.param(infer(raw=b"123"), "3 bytes for input a; its shape [2] of INT32 needs 8", id="too few bytes"),
        pytest.param(infer("UINT8", uint_contents=[1, 300]), "out of the range", id="300 as UINT8"),
        pytest.param(infer("FP16", fp32_contents=[1, 2]), "send them in raw_input_contents", id="FP16 typed"),
        pytest.param(infer("int32", raw=b"1234"), "Unknown datatype: int32", id="numpy's word"),
        pytest.param(infer(raw=bytes(8), int_contents=[1, 2]), "both contents and raw_input_contents", id="both"),
        pytest.param(infer(shape=(-2,), raw=b""), "expected dimensions of at least 0", id="a negative dimension"),
        pytest.param(infer(shape=(2**40, 2**40), raw=b""), "0 bytes for input a", id="a lying shape"),
        pytest.param(infer("INT64", raw=bytes(16)), "the model takes INT32", id="not as declared"),
        pytest.param(message("ModelInfer", model_name="m"), "Input a is missing", id="no input"),
        pytest.param(
            message("ModelInfer", model_name="m", inputs=[{"name": "a"}], raw_input_contents=[b"", b""]),
            "raw_input_contents has 2 values for 1 inputs", id="more raw contents than inputs",
        ),
        pytest.param(
            message("ModelInfer", model_name="m", inputs=[{"name": "a"}, {"name": "a"}]), "given twice", id="twice"
        ),
        pytest.param(message("ModelInfer", model_name="m", inputs=[{}]), "expected 1 to 1000", id="no name"),
        pytest.param(
            message("ModelInfer", model_name="m", parameters={"k": {"double_param": float("nan")}}), "finite", id="NaN"
        ),
    ],
)  # fmt: skip
async def test_a_malformed_request_disturbs_no_worker(tmp_path: Path, request_: Any, reason: str) -> None:
    async with grpc_house(tmp_path) as made:
        await made.house.serve("m", config=DECLARED)

        code, details = await failure(made, made.call("ModelInfer", request_, OIP))

        assert code == "INVALID_ARGUMENT"
        assert reason in details
        assert jobs_of(made) == []


async def test_an_unknown_model_is_not_found(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        assert not (await ask(made, "ModelReady", name="no")).ready
        for word, fields in (("ModelMetadata", {"name": "no"}), ("ModelInfer", {"model_name": "no"})):
            assert await failure(made, made.call(word, message(word, **fields), OIP)) == (
                "NOT_FOUND",
                "Model not found: no",
            )


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_parameters_of_a_sequence_are_its_headers(tmp_path: Path, streamed: bool) -> None:
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

        assert [read_mark(job.headers) for job in jobs_of(made)] == [
            SequenceMark("7", start=True, end=False, made=False),
            SequenceMark("7", start=False, end=False, made=False),
            SequenceMark("7", start=False, end=True, made=False),
        ]


async def test_what_is_not_served_is_refused_by_its_name_as_over_http(tmp_path: Path) -> None:
    region, classes = {"shared_memory_region": {"string_param": "r"}}, {"classification": {"int64_param": 3}}
    tensor: dict[str, Any] = {"name": "a", "datatype": "INT32", "shape": (2,)}
    cases: dict[str, dict[str, Any]] = {
        "Input a has the parameter `shared_memory_region`": {"inputs": [tensor | {"parameters": region}]},
        "Output o has the parameter `shared_memory_region`": {"outputs": [{"name": "o", "parameters": region}]},
        "Output o has the parameter `classification`": {"outputs": [{"name": "o", "parameters": classes}]},
        "The parameter `timeout` of the request is 9": {"parameters": {"timeout": {"int64_param": 9}}},
    }
    async with grpc_house(tmp_path) as made:
        await made.house.serve("m", config=DECLARED)

        for sentence, fields in cases.items():
            request = infer(int_contents=[1, -1])
            if "inputs" in fields:
                del request.inputs[:]
            request.MergeFrom(message("ModelInfer", **fields))
            code, told = await failure(made, made.call("ModelInfer", request, OIP))
            assert (code, told[: len(sentence)]) == ("INVALID_ARGUMENT", sentence)


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


async def test_a_generator_is_decoupled_and_no_whole_call_runs_it(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        model = await made.house.serve("m")
        assert not (await ask(made, "ModelConfig", name="m")).config.model_transaction_policy.decoupled
        model.learn(Declared([Input("text", "text")], batches=False, streams=True), ())

        assert (await ask(made, "ModelConfig", name="m")).config.model_transaction_policy.decoupled
        tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "contents": {"bytes_contents": [b"a"]}}
        asked = message("ModelInfer", model_name="m", inputs=[tensor])
        code, reason = await failure(made, made.call("ModelInfer", asked, OIP))
        assert (code, "ModelStreamInfer" in reason) == ("UNIMPLEMENTED", True)
        assert not made.house.engine.workers[0].batches


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("SystemSharedMemoryRegister", "shared memory: send tensors in the request"),
        ("CudaSharedMemoryStatus", "shared memory of GPUs"),
        ("TraceSetting", "Triton's trace settings"),
        ("LogSettings", "Triton's settings of its log"),
    ],
)
async def test_what_triton_has_beside_is_refused_by_name(tmp_path: Path, service: str, call: str, named: str) -> None:
    async with grpc_house(tmp_path) as made:
        code, reason = await failure(made, made.channel.unary_unary(f"/{service}/{call}")(b""))

        assert (code, reason.startswith(f"tsctl does not serve {named}")) == ("UNIMPLEMENTED", True)
        assert (await failure(made, made.channel.unary_unary(f"/{service}/Nothing")(b"")))[1] == "Method not found!"
