"""`/metrics` tells what was measured, and follows versions as they come and go."""

import asyncio
from pathlib import Path

import pytest

from tests.api.house import House
from tests.metrics.reading import types, values
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.metrics.version import OTHER, REASONS
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.workers.engine import ENDS, LoadFailure
from tsctl.handlers.wire import Measurement

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
M = "model=m,version=1.0"
OK = "model=m,outcome=ok,version=1.0"


async def metrics_of(house: House, query: str = "") -> dict[str, float]:
    answer = await house.ask("GET", f"/metrics{query}")
    assert (answer.status, answer.headers["content-type"]) == (200, CONTENT_TYPE)
    return values(answer.body.decode())


async def test_an_empty_daemon_tells_of_its_machine(house: House) -> None:
    lines = await metrics_of(house)

    assert lines["Requests2XX{Level=Host}"] == 0
    assert lines["MemoryUsed{Level=Host}"] > 0
    assert not any("model=" in line or "model_name=" in line for line in lines)


async def test_predictions_are_counted_by_how_their_version_was_named(house: House) -> None:
    await house.serve("m")
    await house.ask("POST", "/predictions/m", b"a")
    await house.ask("POST", "/predictions/m/1.0", b"a")
    await house.ask("POST", "/predictions/m/1.0", b"a")
    await house.ask("POST", "/predictions/unknown", b"a")

    lines = await metrics_of(house)

    assert lines["ts_inference_requests_total{model_name=m,model_version=default}"] == 1
    assert lines["ts_inference_requests_total{model_name=m,model_version=1.0}"] == 2
    assert lines[f"tsctl_request_latency_seconds_count{{{OK}}}"] == 3
    assert lines["tsctl_batches_total{model=m,reason=full,version=1.0}"] == 3
    assert not any("unknown" in line for line in lines)


async def test_what_is_there_now_is_shown(house: House) -> None:
    house.engine.load_time = 2.0
    model = await house.serve("m", workers=2)
    house.clock.advance(2.0)
    house.engine.batch_time = lambda size: 60.0
    for _ in range(3):
        house.send("POST", "/predictions/m", b"abc")
    house.clock.settle()

    lines = await metrics_of(house)

    assert model.pool.ready == 2
    assert lines[f"tsctl_running_jobs{{{M}}}"] == 2
    assert (lines[f"tsctl_queue_jobs{{{M}}}"], lines[f"tsctl_queue_bytes{{{M}}}"]) == (1, 3)
    assert (lines[f"tsctl_workers_ready{{{M}}}"], lines[f"tsctl_workers_wanted{{{M}}}"]) == (2, 2)
    assert lines["WorkerLoadTime{Level=Host,WorkerName=W-9000-m_1.0}"] == 2000
    assert lines["WorkerLoadTime{Level=Host,WorkerName=W-9001-m_1.0}"] == 2000


async def test_what_a_handler_emits_comes_from_its_workers_frames(house: House) -> None:
    await house.serve("m")
    (worker,) = house.engine.workers

    worker.spec.measured([Measurement("counter", "Seen", "count", (("Level", "Model"),), 3.0)])
    worker.die()
    house.clock.advance(1.0)

    lines = await metrics_of(house)
    assert lines["Seen{Level=Model,ModelName=m,ModelVersion=1.0}"] == 3


async def test_a_version_that_leaves_keeps_its_counters_only(house: House) -> None:
    await house.serve("m")
    await house.ask("POST", "/predictions/m/1.0", b"a")
    await house.ask("DELETE", "/models/m/1.0")

    lines = await metrics_of(house)

    reasons = (*REASONS.values(), OTHER, *house.metrics.refusal_labels)
    # An extension has counters of all versions, or of those that use it: its own tests say which.
    of_extensions = {
        f"{row.name}{{model=m,version=1.0}}" for each in EXTENSIONS for row in each.metrics if row.kind == "counter"
    }
    assert {line for line in lines if "=m," in line or "=m}" in line or "_m_" in line} - of_extensions == {
        *(
            f"ts_{name}{{model_name=m,model_version={version}}}"
            for name in ("inference_requests_total", "inference_latency_microseconds", "queue_latency_microseconds")
            for version in ("1.0", "default")
        ),
        "tsctl_batches_total{model=m,reason=full,version=1.0}",
        "tsctl_isolated_batches_total{model=m,version=1.0}",
        "tsctl_isolated_failures_total{model=m,version=1.0}",
        "tsctl_requests_total{code=200,model=m,version=1.0}",
        *(f"tsctl_requests_judged_total{{model=m,verdict={verdict},version=1.0}}" for verdict in ("bad", "good")),
        "tsctl_requests_retried_total{model=m,version=1.0}",
        "tsctl_request_bytes_total{model=m,version=1.0}",
        "tsctl_answer_bytes_total{model=m,version=1.0}",
        "tsctl_worker_starts_total{model=m,version=1.0}",
        *(f"tsctl_worker_exits_total{{how={how},model=m,version=1.0}}" for how in ENDS),
        *(f"tsctl_requests_refused_total{{model=m,reason={why},version=1.0}}" for why in reasons),
    }


async def test_a_registration_that_is_refused_leaves_the_registered_one_alone(house: House) -> None:
    await house.serve("m")
    await house.ask("POST", "/predictions/m/1.0", b"a")

    status, _ = await house.tell("POST", "/models?url=m-1.0")

    assert status == 409
    assert (await metrics_of(house))[f"tsctl_request_latency_seconds_count{{{OK}}}"] == 1


async def test_a_registration_that_fails_leaves_nothing(house: House) -> None:
    house.engine.load_failure = LoadFailure("ValueError: bad weights")
    house.put("m")

    status, _ = await house.tell("POST", "/models?url=m&initial_workers=1&synchronous=true")

    assert status == 500
    assert not [line for line in await metrics_of(house) if "=m," in line or "=m}" in line]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        pytest.param("?name[]=Requests4XX", {"Requests4XX"}, id="one"),
        pytest.param("?name%5B%5D=Requests4XX&name[]=MemoryUsed", {"Requests4XX", "MemoryUsed"}, id="two, one escaped"),
        pytest.param("?name[]=Nothing", set(), id="none that is there"),
        pytest.param("?name[]=", set(), id="none without a name"),
        pytest.param("?name=Requests4XX", None, id="another parameter asks for nothing"),
    ],
)
async def test_names_can_be_asked_for(query: str, told: set[str] | None, house: House) -> None:
    answer = await house.ask("GET", f"/metrics{query}")

    shown = set(types(answer.body.decode()))
    assert answer.status == 200
    assert shown == told if told is not None else len(shown) > 5


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_every_method_is_answered(method: str, house: House) -> None:
    answer = await house.ask(method, "/metrics?name[]=Requests2XX")

    assert (answer.status, answer.headers["content-type"]) == (200, CONTENT_TYPE)
    assert b"Requests2XX" in answer.body


async def test_head_tells_the_length_and_no_more(house: House) -> None:
    peer = house.send("HEAD", "/metrics?name[]=Requests2XX")
    while not house.exchanges[-1].done:  # noqa: ASYNC110 - it takes a few turns of the loop
        await asyncio.sleep(0)

    head, _, body = bytes(peer.transport.written).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n") and CONTENT_TYPE.encode() in head
    assert b"content-length: 0" not in head
    assert body == b""


async def test_there_is_nothing_below_it(house: House) -> None:
    assert (await house.ask("GET", "/metrics/more")).status == 404


async def test_gpus_are_shown_where_there_are_some(tmp_path: Path) -> None:
    house = House(tmp_path, gpus=[Card(index=3, uuid="GPU-a", name="H100", total=2**32, used=2**30, busy=37.0)])
    asked = "?name[]=GPUUtilization&name[]=GPUMemoryUsed&name[]=tsctl_gpu_memory_total_bytes"
    lines = await metrics_of(house, asked)

    assert lines == {
        "GPUUtilization{DeviceId=0,Level=Host}": 37,
        "GPUMemoryUsed{DeviceId=0,Level=Host}": 1024,
        "tsctl_gpu_memory_total_bytes{gpu=0,name=H100,uuid=GPU-a}": 2**32,
    }


async def test_a_request_that_is_malformed_is_counted_for_its_model(house: House) -> None:
    await house.serve("m")

    assert (await house.ask("POST", "/predictions/m", b"a", "x-request-priority: urgent")).status == 400
    assert (
        await house.ask("POST", "/predictions/m", b"a", "content-type: multipart/form-data; boundary=x")
    ).status == 400

    lines = await metrics_of(house)
    assert lines["tsctl_requests_refused_total{model=m,reason=invalid,version=1.0}"] == 2
    assert lines["tsctl_requests_total{code=400,model=m,version=1.0}"] == 2


async def test_the_age_of_the_oldest_waiting_request_is_shown(house: House) -> None:
    await house.serve("m")
    house.engine.batch_time = lambda size: 60.0
    for _ in range(4):
        house.send("POST", "/predictions/m", b"abc")
    house.clock.settle()
    house.clock.advance(7.0)

    lines = await metrics_of(house)

    assert lines[f"tsctl_queue_oldest_seconds{{{M}}}"] == 7.0
    assert lines[f"tsctl_workers_pausing{{{M}}}"] == lines[f"tsctl_workers_given_up{{{M}}}"] == 0
