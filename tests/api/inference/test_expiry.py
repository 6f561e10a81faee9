"""How long a prediction may take, and which goes first: what clients say in headers, and models in their settings."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House, error
from tests.http.peer import Peer
from tsctl.daemon.api.management.describe import describe
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.settings import Overrides

BUDGET = "x-request-deadline-ms: "
PRIORITY = "x-request-priority: "


@pytest.fixture
def house(tmp_path: Path) -> House:
    """Every batch takes a second, and waits in the queue until its worker is idle."""
    house = House(tmp_path, queue_jobs="100")
    house.engine.capacity = 1
    house.engine.batch_time = lambda size: 1.0
    return house


def serve(house: House, config: str = "batching: greedy") -> None:
    asyncio.run(house.serve("m", config=config))


def told(peer: Peer) -> tuple[int, Any]:
    """Status and document of the only answer."""
    (answer,) = peer.answers
    return answer.status, json.loads(answer.body)


def sent(house: House) -> list[bytes]:
    """The bodies of the jobs that workers were given, in that order."""
    return [bytes(job.params[0].value) for each in house.engine.workers for batch in each.batches for job in batch.jobs]


@pytest.mark.parametrize("target", ["/predictions/m", "/explanations/m/1.0", "/v2/models/m/infer", "/models/m/invoke"])
def test_a_request_whose_worker_is_too_slow_is_answered_at_its_deadline(house: House, target: str) -> None:
    serve(house)

    peer = house.send("POST", target, b"", BUDGET + "300")
    house.clock.advance(0.2999)
    assert peer.answers == []
    house.clock.advance(0.0002)

    assert told(peer) == error(
        504,
        "RequestTimeoutException",
        "The model did not answer in time: of the 300 ms that x-request-deadline-ms allows, it waited 0 ms in the queue"
        " and has run for 300 ms. Its answer will be dropped. Allow more time.",
        target,
    )
    house.clock.advance(5.0)
    assert len(peer.answers) == 1 and house.registry.find("m").idle


def test_the_connection_lives_on(house: House) -> None:
    serve(house)
    peer = house.send("POST", "/predictions/m", b"", BUDGET + "300")
    house.clock.advance(2.0)

    peer.send(b"POST /predictions/m HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
    house.clock.advance(2.0)

    assert peer.statuses == [504, 200]


def test_the_budget_counts_from_the_headers(house: House) -> None:
    serve(house)
    peer = house.send("POST", "/predictions/m", b"")
    house.clock.advance(1.0)
    head = f"POST /predictions/m HTTP/1.1\r\nHost: a\r\n{BUDGET}300\r\nContent-Length: 2\r\n\r\n"
    peer.send(head.encode() + b"a")
    house.clock.advance(0.25)
    peer.send(b"b")

    house.clock.advance(0.04)
    assert peer.statuses == [200]
    house.clock.advance(0.02)

    assert peer.statuses == [200, 504]
    assert b"it took 250 ms to arrive, waited 0 ms in the queue and has run for 50 ms." in peer.bodies[1]


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "soon", "", "1e3", "٣", "1 2"])
def test_what_is_no_budget_is_named(house: House, value: str) -> None:
    serve(house)

    peer = house.send("POST", "/predictions/m", b"body", BUDGET + value)

    shown = value.encode().decode("latin-1")
    sentence = f"Invalid header x-request-deadline-ms: `{shown}`; expected a whole number of milliseconds, at least 1."
    assert told(peer) == error(400, "BadRequestException", sentence)
    assert peer.answers[0].keeps and sent(house) == []


@pytest.mark.parametrize("value", ["1000000000000000000000", "9" * 5000, "007000"])
def test_any_whole_number_is_a_budget(house: House, value: str) -> None:
    serve(house)

    peer = house.send("POST", "/predictions/m", b"", BUDGET + value)
    house.clock.advance(2.0)

    assert peer.statuses == [200]


@pytest.mark.parametrize("value", ["high", "Low", "", "1"])
def test_what_is_no_priority_is_named(house: House, value: str) -> None:
    serve(house)

    peer = house.send("POST", "/predictions/m", b"", PRIORITY + value)

    sentence = f"x-request-priority is `{value}`; expected low or normal."
    assert told(peer) == error(400, "BadRequestException", sentence)


def test_within_four_delays_the_others_go_first(house: House) -> None:
    serve(house, "batching: greedy\nmaxBatchDelay: 500")
    house.send("POST", "/predictions/m", b"running")

    house.send("POST", "/predictions/m", b"low", PRIORITY + "low")
    house.send("POST", "/predictions/m", b"normal", PRIORITY + "normal")
    house.clock.advance(5.0)

    assert sent(house) == [b"running", b"normal", b"low"]


@pytest.mark.parametrize(
    ("asked", "after"),
    [
        pytest.param([], 0.5, id="nothing asked: what the model allows"),
        pytest.param([BUDGET + "200"], 0.2, id="less asked: that"),
        pytest.param([BUDGET + "60000"], 0.5, id="more asked: what the model allows"),
    ],
)
def test_torchserves_client_timeout_limits_every_request(house: House, asked: list[str], after: float) -> None:
    serve(house, "batching: greedy\nclientTimeoutInMills: 500")

    peer = house.send("POST", "/predictions/m", b"", *asked)
    house.clock.advance(after - 0.001)
    assert peer.answers == []
    house.clock.advance(0.002)

    assert told(peer)[0] == 504
    source = "x-request-deadline-ms" if after == 0.2 else "clientTimeoutInMills"
    assert f"{after * 1000:g} ms that {source} allows" in told(peer)[1]["message"]


def test_a_client_timeout_that_was_set_counts_from_the_next_request(house: House) -> None:
    serve(house, "batching: greedy")
    before = house.send("POST", "/predictions/m")

    status, answer = asyncio.run(house.tell("PATCH", "/models/m?client_timeout=0.5"))
    after = house.send("POST", "/predictions/m")
    house.clock.advance(5.0)

    assert (status, answer["changes"]) == (200, [{"name": "clientTimeoutInMills", "from": 0.0, "to": 500.0}])
    assert (before.statuses, after.statuses) == ([200], [504])


def test_no_client_timeout_is_none(house: House) -> None:
    serve(house, "clientTimeoutInMills: 0\nqueueTimeout: 0")
    peers = [house.send("POST", "/predictions/m") for _ in range(3)]

    house.clock.advance(5.0)

    assert [peer.statuses for peer in peers] == [[200]] * 3


def test_the_queue_timeout_can_be_asked_for_at_registration(house: House) -> None:
    house.put("m")

    status, _ = asyncio.run(house.tell("POST", "/models?url=m&queue_timeout=2.5"))

    assert status == 200
    assert house.registry.find("m").settings.queue_timeout == 2.5


def test_a_queue_timeout_that_is_set_counts_for_those_that_wait_already(house: House) -> None:
    serve(house)
    peers = [house.send("POST", "/predictions/m") for _ in range(3)]
    house.clock.advance(0.25)

    status, _ = asyncio.run(house.tell("PATCH", "/models/m?queue_timeout=0.5&max_batch_delay=1000"))
    house.clock.advance(0.249)
    assert [peer.statuses for peer in peers] == [[], [], []]
    house.clock.advance(0.002)

    assert status == 200
    assert [peer.statuses for peer in peers] == [[], [504], [504]]
    assert house.registry.find("m").queue.patience == 4.0


def test_an_answer_that_has_begun_is_cut_off_visibly(house: House) -> None:
    serve(house)
    peer = house.send("POST", "/predictions/m", b"", BUDGET + "500")
    house.engine.workers[0].stream(b"first")

    house.clock.advance(0.6)
    assert peer.transport.aborted
    assert not peer.transport.written.endswith(b"0\r\n\r\n")

    house.engine.workers[0].stream(b"second")
    house.clock.advance(5.0)
    assert b"second" not in peer.transport.written
    assert house.registry.find("m").idle


def test_what_has_expired_is_counted_where_it_was(house: House) -> None:
    serve(house)
    for _ in range(3):
        house.send("POST", "/predictions/m", b"", BUDGET + "300")
    house.clock.advance(5.0)

    document = describe(house.registry.find("m"))
    metrics = asyncio.run(house.ask("GET", "/metrics")).body.decode()

    assert document["tsctl"]["batching"]["expired"] == {"queue": 2, "worker": 1}
    assert 'tsctl_requests_expired_total{limit="client",model="m",version="1.0",where="queue"} 2.0' in metrics
    assert 'tsctl_requests_expired_total{limit="client",model="m",version="1.0",where="worker"} 1.0' in metrics
    assert 'tsctl_request_latency_seconds_count{model="m",outcome="expired",version="1.0"} 1.0' in metrics, (
        "only what a worker had"
    )


def test_the_limits_are_described(house: House) -> None:
    house.put("m", config="clientTimeoutInMills: 500\nqueueTimeout: 2")
    model = asyncio.run(house.registrar.register(Registration(url="m", overrides=Overrides(queue_timeout=1.5))))

    document = describe(model)

    settings = {each["name"]: (each["value"], each["origin"]) for each in document["tsctl"]["settings"]}
    assert document["clientTimeoutInMills"] == 500
    assert settings["clientTimeoutInMills"] == (500.0, "model-config.yaml")
    assert settings["queueTimeout"] == (1.5, "register")


def test_the_api_description_names_the_headers(house: House) -> None:
    _, document = asyncio.run(house.tell("OPTIONS", "/"))

    prediction = document["paths"]["/predictions/{model_name}"]["post"]
    names = {each["name"] for each in prediction["parameters"] if each["in"] == "header"}
    assert names == {"x-request-deadline-ms", "x-request-priority"}
    assert "504" in prediction["responses"]
