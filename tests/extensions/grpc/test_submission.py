"""A call has the way of any request to its model: the claims of tests/api/test_submission.py, over gRPC."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.api.test_submission import TENSOR, Arrange, Headers, check_refusal, check_watched, every_refusal
from tests.extensions.grpc.client import PATIENCE, GrpcHouse, grpc_house, jobs_of, prediction
from tests.extensions.grpc.test_predictions import until
from tsctl.daemon.extensions.grpc.oip import SERVICES
from tsctl.daemon.extensions.grpc.protos.messages import message_class

pytestmark = pytest.mark.slow  # a real server and client of gRPC


async def _called(made: GrpcHouse, call: object) -> tuple[int, str]:
    """Return the HTTP status of a call that ends, and the error's text."""
    before = len(made.statuses)
    text = ""
    try:
        await made.settled(call)
    except made.grpc.aio.AioRpcError as error:
        text = error.details()
    (status,) = made.statuses[before:]
    return status, text


async def predictions(made: GrpcHouse, headers: Headers) -> tuple[int, str]:
    return await _called(made, made.call("Predictions", prediction("m", data=b"1"), metadata=headers))


async def stream_predictions(made: GrpcHouse, headers: Headers) -> tuple[int, str]:
    call = made.call("StreamPredictions", prediction("m", data=b"1"), metadata=headers)
    return await _called(made, _last(call))


async def _last(call: object) -> None:
    async for _ in call:  # type: ignore[attr-defined]
        pass


async def model_infer(made: GrpcHouse, headers: Headers) -> tuple[int, str]:
    request = message_class("inference.ModelInferRequest")(model_name="m", inputs=[TENSOR])
    request.inputs[0].contents.int_contents.append(1)
    return await _called(made, made.call("ModelInfer", request, SERVICES[0], metadata=headers))


WAYS: dict[str, Callable[[GrpcHouse, Headers], Awaitable[tuple[int, str]]]] = {
    "TorchServe": predictions,
    "TorchServe, in pieces": stream_predictions,
    "OIP": model_infer,
}


@pytest.mark.parametrize("way", WAYS)
@every_refusal
async def test_a_refusal_is_the_same_as_over_http_and_counts_once(
    tmp_path: Path, way: str, arrange: Arrange, headers: Headers, status: int, reason: str, text: str
) -> None:
    async with grpc_house(tmp_path) as made:
        await check_refusal(made.house, lambda sent: WAYS[way](made, sent), arrange, headers, status, reason, text)


@pytest.mark.parametrize(("way", "repeated"), [("TorchServe", True), ("TorchServe, in pieces", True), ("OIP", False)])
async def test_who_watches_requests_sees_each_and_what_repeats_it_as_a_plain_prediction(
    tmp_path: Path, way: str, repeated: bool
) -> None:
    async with grpc_house(tmp_path) as made:
        await check_watched(made.house, lambda sent: WAYS[way](made, sent), repeated)


async def test_a_call_has_arrived_when_its_message_is_complete_and_its_deadline_is_no_sooner(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        await made.house.serve("m")
        call = made.call_in_pieces("Predictions", timeout=PATIENCE)
        await until(lambda: made.calls.running == 1)
        began = made.house.clock.now()
        made.house.clock.advance(50.0)

        await call.write(prediction("m", data=b"1"))
        await call.done_writing()
        await made.settled(call)

        (job,) = jobs_of(made)
        assert job.budget is not None
        assert (job.arrived, job.budget.since) == (began + 50.0, began)
        rounded = PATIENCE * 1.01  # on the wire: up, to at most three digits
        assert PATIENCE < job.budget.seconds <= 50.0 + rounded
