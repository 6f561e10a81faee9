"""A request has the same way to its model over every protocol: refused, counted and recorded alike."""

from collections.abc import Awaitable, Callable

import pytest

from tests.api.house import House
from tests.kit.protocols import PROTOCOLS
from tsctl.daemon.core.job import Job
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.daemon.models.version import ModelVersion

Headers = tuple[tuple[str, str], ...]
Ask = Callable[[Headers], Awaitable[tuple[int, str]]]  # returns the HTTP status, and the error's text
TENSOR = {"name": "a", "datatype": "INT32", "shape": [1]}


class Watcher:
    """Sees requests, and keeps what it is told."""

    def __init__(self, seen: list[RequestFacts]) -> None:
        self._seen = seen

    def watch(self, job: Job, asked: RequestFacts) -> bool:
        self._seen.append(asked)
        return False


async def over_http(house: House, way: str, headers: Headers) -> tuple[int, str]:
    target, body = WAYS[way]
    lines = [f"{name}: {value}" for name, value in headers]
    answer = await house.ask("POST", target, body, *lines)
    return answer.status, answer.body.decode()


WAYS: dict[str, tuple[str, bytes]] = {
    "HTTP": ("/predictions/m", b"[1]"),
    "SageMaker": ("/models/m/invoke", b"[1]"),
    **{each.name: each.predict("m") for each in PROTOCOLS},
}


def stop_taking(house: House, model: ModelVersion) -> None:
    house.engine.batch_time = lambda _size: 1e6
    for _ in range(model.queue.max_jobs + model.settings.batch_size + 1):
        if model.waiting < model.queue.max_jobs:
            house.send("POST", "/predictions/m", b"1")
            house.clock.settle()
    assert model.waiting == model.queue.max_jobs


def stop(_house: House, model: ModelVersion) -> None:
    model.scale(0, 0)


def nothing(_house: House, _model: ModelVersion) -> None:
    pass


every_refusal = pytest.mark.parametrize(
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
Arrange = Callable[[House, ModelVersion], None]


@pytest.mark.parametrize("way", WAYS)
@every_refusal
async def test_a_refusal_is_the_same_over_every_protocol_and_counts_once(
    house: House, way: str, arrange: Arrange, headers: Headers, status: int, reason: str, text: str
) -> None:
    await check_refusal(house, lambda sent: over_http(house, way, sent), arrange, headers, status, reason, text)


async def check_refusal(
    house: House, ask: Ask, arrange: Arrange, headers: Headers, status: int, reason: str, text: str
) -> None:
    """Ask where a request is refused, and see how, and what is counted."""
    model = await house.serve("m")
    arrange(house, model)
    house.clock.settle()

    told = await ask(headers)

    assert told[0] == status
    assert text in told[1]
    assert {why: count for why, count in model.metrics.refusals.items() if count} == {reason: 1}
    assert model.metrics.codes[status] == 1


@pytest.mark.parametrize(
    ("way", "repeated"), [("HTTP", True), ("SageMaker", False), *((each.name, each.records) for each in PROTOCOLS)]
)
async def test_who_watches_requests_sees_each_and_what_repeats_it_as_a_plain_prediction(
    house: House, way: str, repeated: bool
) -> None:
    """Of tensors that is JSON, which goes to a model that declares none as it is."""
    await check_watched(house, lambda sent: over_http(house, way, sent), repeated)


async def check_watched(house: House, ask: Ask, repeated: bool) -> None:
    """Ask a model whose requests are watched, and see what the watcher is told."""
    model = await house.serve("m")
    seen: list[RequestFacts] = []
    model.watchers = (Watcher(seen),)

    await ask(())

    (asked,) = seen
    assert (asked.repeated is not None) == repeated
    assert (asked.method, asked.began) == ("POST", house.clock.now())
