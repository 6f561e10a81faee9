"""Streams over gRPC: each piece is a message, the worker waits for a client that is slow, and idle ones make room."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api.inference.test_streaming import Flow
from tests.extensions.grpc.client import INFERENCE, KEEP_ALIVE, GrpcHouse, grpc_house, prediction
from tsctl.daemon.core.job import Job, Piece, Reply
from tsctl.daemon.extensions.grpc.protos.messages import message_class

OIP = "inference.GRPCInferenceService"

pytestmark = pytest.mark.slow  # a real server and client


async def begun(made: GrpcHouse) -> Job:
    """Return the job of the call that was just made, at its worker."""
    made.house.engine.batch_time = lambda _size: 10.0
    made.house.engine.answer = lambda _job: Reply(200, b"last")
    model = await made.house.serve("m")
    made.stream = made.call("StreamPredictions", prediction("m"))
    await made.house.until(lambda: model.running)
    return made.house.engine.workers[0].batches[0].jobs[0]


async def read(made: GrpcHouse) -> bytes:
    piece: bytes = (await made.settled(made.stream.read())).prediction
    return piece


async def test_each_piece_is_a_message_and_is_reported_when_written(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        job, flow = await begun(made), Flow()
        job.stream(Piece(200, b"first", flow=flow))
        assert flow.wanted
        assert await read(made) == b"first"
        await made.house.until(lambda: flow.told == ["drained"])
        job.stream(Piece(200, b"second", flow=flow))
        assert await read(made) == b"second"
        made.house.clock.advance(10.0)

        assert await read(made) == b"last"
        assert await made.settled(made.stream.read()) is made.grpc.aio.EOF
        assert made.statuses == [200]


async def test_a_client_that_leaves_ends_the_stream_at_its_source(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        job, flow = await begun(made), Flow()
        job.stream(Piece(200, b"first", flow=flow))
        await read(made)
        made.stream.cancel()

        await made.house.until(lambda: "refused" in flow.told)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (Piece(503, b"", unread="The client did not read."), "UNAVAILABLE"),
        (Piece(503, b"boom", error="InternalServerException"), "INTERNAL"),
    ],
)
async def test_a_failure_after_the_first_piece_ends_the_stream_with_its_code(
    tmp_path: Path, end: Piece, code: str
) -> None:
    async with grpc_house(tmp_path) as made:
        job = await begun(made)
        job.stream(Piece(200, b"first"))
        await read(made)
        job.stream(end)

        with pytest.raises(made.grpc.aio.AioRpcError, match=code):
            await read(made)


async def test_a_whole_call_of_a_streaming_model_joins_the_pieces(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        made.house.engine.batch_time = lambda _size: 10.0
        made.house.engine.answer = lambda _job: Reply(200, b"last")
        model = await made.house.serve("m")
        call = made.call("Predictions", prediction("m"))
        await made.house.until(lambda: model.running)
        made.house.engine.workers[0].batches[0].jobs[0].stream(Piece(200, b"first "))
        made.house.clock.advance(10.0)

        assert (await made.settled(call)).prediction == b"first last"


async def asked(*requests: Any) -> AsyncIterator[Any]:
    """Send requests, and leave the stream open."""
    for request in requests:
        yield request
    await asyncio.Event().wait()


def tensors() -> Any:
    request = message_class("inference.ModelInferRequest")(model_name="m")
    request.inputs.add(name="a", datatype="INT32", shape=[1]).contents.int_contents.append(7)
    return request


@pytest.mark.parametrize("asks", [0, 1], ids=["from the beginning", "after an answer"])
@pytest.mark.parametrize(
    ("call", "owner", "request_of"),
    [("ModelStreamInfer", OIP, tensors), ("StreamPredictions2", INFERENCE, lambda: prediction("m"))],
)
async def test_a_stream_whose_client_asks_for_nothing_ends_where_others_want_its_place(
    call: str, owner: str, request_of: Callable[[], Any], asks: int, tmp_path: Path
) -> None:
    async with grpc_house(tmp_path, calls=1) as made:
        made.house.engine.answer = lambda _job: Reply(200, b'{"outputs": []}')
        await made.house.serve("m")
        stream = made.call(call, asked(*[request_of()] * asks), owner)
        for _ in range(asks):
            await made.settled(stream.read())
        await made.house.until(lambda: "1 read" in repr(made.incoming))
        with pytest.raises(made.grpc.aio.AioRpcError, match="RESOURCE_EXHAUSTED"):
            await made.settled(made.call("Predictions", prediction("m")))

        made.house.clock.advance(KEEP_ALIVE + 1.0)

        with pytest.raises(made.grpc.aio.AioRpcError, match="DEADLINE_EXCEEDED") as ended:
            await made.settled(stream.read())
        assert "--keep-alive" in str(ended.value.details())
        await made.settled(made.call("Predictions", prediction("m")))


async def test_a_stream_lives_while_one_of_its_requests_waits_for_its_answer(tmp_path: Path) -> None:
    async with grpc_house(tmp_path, calls=1) as made:
        made.house.engine.batch_time = lambda _size: 2 * KEEP_ALIVE
        made.house.engine.answer = lambda _job: Reply(200, b'{"outputs": []}')
        model = await made.house.serve("m", config="responseTimeout: 300")
        made.stream = made.call("ModelStreamInfer", asked(tensors()), OIP)
        await made.house.until(lambda: model.running and "1 read" in repr(made.incoming))

        made.house.clock.advance(2 * KEEP_ALIVE)

        answer = await made.settled(made.stream.read())
        assert (answer.error_message, answer.infer_response.model_name) == ("", "m")
        assert "1 read" in repr(made.incoming)  # the next request
        made.stream.cancel()
