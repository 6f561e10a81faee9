"""A request has the same way to its model over every protocol: refused, counted and recorded alike."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.api.grpc.client import GrpcHouse, grpc_house, prediction
from tests.kit.protocols import PROTOCOLS
from tsctl.daemon.api.grpc.oip import SERVICES
from tsctl.daemon.api.grpc.protos.messages import message_class
from tsctl.daemon.core.job import Job
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.daemon.models.version import ModelVersion

pytestmark = pytest.mark.slow  # a real server and client of gRPC

Headers = tuple[tuple[str, str], ...]
Ask = Callable[[GrpcHouse, Headers], Awaitable[tuple[int, str]]]  # returns the HTTP status, and the error's text
TENSOR = {"name": "a", "datatype": "INT32", "shape": [1]}


class Watcher:
    """Sees requests, and keeps what it is told."""

    def __init__(self, seen: list[RequestFacts]) -> None:
        self._seen = seen

    def watch(self, job: Job, asked: RequestFacts) -> None:
        self._seen.append(asked)


def over_http(target: str, body: bytes) -> Ask:
    async def ask(made: GrpcHouse, headers: Headers) -> tuple[int, str]:
        lines = [f"{name}: {value}" for name, value in headers]
        answer = await made.house.ask("POST", target, body, *lines)
        return answer.status, answer.body.decode()

    return ask


async def _called(made: GrpcHouse, call: object) -> tuple[int, str]:
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


WAYS: dict[str, Ask] = {
    "HTTP": over_http("/predictions/m", b"[1]"),
    "SageMaker": over_http("/models/m/invoke", b"[1]"),
    **{each.name: over_http(*each.predict("m")) for each in PROTOCOLS},
    "gRPC": predictions,
    "gRPC, in pieces": stream_predictions,
    "gRPC, OIP": model_infer,
}
ways = pytest.mark.parametrize("ask", [pytest.param(ask, id=name) for name, ask in WAYS.items()])


def stop_taking(made: GrpcHouse, model: ModelVersion) -> None:
    made.house.engine.batch_time = lambda _size: 1e6
    for _ in range(model.queue.max_jobs + model.settings.batch_size + 1):
        if model.waiting < model.queue.max_jobs:
            made.house.send("POST", "/predictions/m", b"1")
            made.house.clock.settle()
    assert model.waiting == model.queue.max_jobs


def stop(_made: GrpcHouse, model: ModelVersion) -> None:
    model.scale(0, 0)


def nothing(_made: GrpcHouse, _model: ModelVersion) -> None:
    pass


@ways
@pytest.mark.parametrize(
    ("arrange", "headers", "status", "reason", "text"),
    [
        pytest.param(stop_taking, (), 503, "queue_full", "m", id="a full queue"),
        pytest.param(stop, (), 503, "no_worker", "m", id="no worker"),
        pytest.param(
            nothing, (("x-request-deadline-ms", "soon"),), 400, "invalid", "x-request-deadline-ms: `soon`",
            id="a deadline that is none",
        ),
        pytest.param(
            nothing, (("x-request-priority", "high"),), 400, "invalid", "x-request-priority is `high`",
            id="a priority that is none",
        ),
    ],
)  # fmt: skip
async def test_a_refusal_is_the_same_over_every_protocol_and_counts_once(
    tmp_path: Path,
    ask: Ask,
    arrange: Callable[[GrpcHouse, ModelVersion], None],
    headers: Headers,
    status: int,
    reason: str,
    text: str,
) -> None:
    async with grpc_house(tmp_path) as made:
        model = await made.house.serve("m")
        arrange(made, model)
        made.house.clock.settle()

        told = await ask(made, headers)

        assert told[0] == status
        assert text in told[1]
        assert {why: count for why, count in model.metrics.refusals.items() if count} == {reason: 1}
        assert model.metrics.codes[status] == 1


@pytest.mark.parametrize(
    ("way", "repeated"),
    [
        ("HTTP", True), ("gRPC", True), ("gRPC, in pieces", True),
        ("SageMaker", False), ("gRPC, OIP", False), *((each.name, each.records) for each in PROTOCOLS),
    ],
)  # fmt: skip
async def test_who_watches_requests_sees_each_and_what_repeats_it_as_a_plain_prediction(
    tmp_path: Path, way: str, repeated: bool
) -> None:
    """Of tensors that is JSON, which goes to a model that declares none as it is."""
    async with grpc_house(tmp_path) as made:
        model = await made.house.serve("m")
        seen: list[RequestFacts] = []
        model.watchers = (Watcher(seen),)

        await WAYS[way](made, ())

        (asked,) = seen
        assert (asked.repeated is not None) == repeated
        assert (asked.method, asked.began) == ("POST", made.house.clock.now())
