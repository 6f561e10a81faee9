"""Predictions over gRPC go the way of HTTP's: the same queue, errors, deadlines and cancellation."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.grpc.client import PATIENCE, GrpcHouse, grpc_house, jobs_of, prediction
from tsctl.daemon.api.submission import submit
from tsctl.daemon.core.arena import COPIED_AT_ONCE, Arena, Lease, Payload
from tsctl.daemon.core.job import Job, JobPhase, Reply
from tsctl.daemon.extensions.grpc import prediction as prediction_module

pytestmark = pytest.mark.slow  # a real server and client


async def failure(made: GrpcHouse, call: object) -> tuple[str, str]:
    with pytest.raises(made.grpc.aio.AioRpcError) as caught:
        await made.settled(call)
    return caught.value.code().name, caught.value.details()


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs of the calls, each of which is submitted as soon as it is made."""
    made: list[Job] = []

    def submit_and_note(*arguments: Any, **named: Any) -> Job:
        made.append(submit(*arguments, **named))
        return made[-1]

    monkeypatch.setattr(prediction_module, "submit", submit_and_note)
    return made


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - the conditions are of a queue, which has no events
            await asyncio.sleep(0)


async def test_inputs_metadata_and_the_missing_version_reach_the_job(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        await made.house.serve("m", "2.0")
        metadata = (("x-request-id", "mine"), ("x-request-priority", "low"), ("colour", "red"))
        for version in ("", "2.0"):
            await made.settled(made.call("Predictions", prediction("m", version, data=b"1"), metadata=metadata))

        jobs = jobs_of(made)
        assert [job.unnamed for job in jobs] == [True, False]
        assert [(param.name, bytes(param.value)) for param in jobs[0].params] == [("data", b"1")]
        assert (jobs[0].id, jobs[0].low_priority) == ("mine", True)
        assert ("colour", "red") in jobs[0].headers
        assert made.statuses == [200, 200]


async def test_a_large_input_is_where_the_worker_reads_it(tmp_path: Path) -> None:
    arena = Arena(2**23)
    data = bytes(COPIED_AT_ONCE) + b"its end"
    values: dict[str, Payload] = {}

    def answer(job: Job) -> Reply:
        values.update({param.name: param.value for param in job.params})
        return Reply(200, b"")

    async with grpc_house(tmp_path, most=2**22, take=arena.take) as made:
        made.house.engine.answer = answer
        await made.house.serve("m")

        await made.settled(made.call("Predictions", prediction("m", data=data, small=b"1")))

        assert isinstance(values["data"], Lease) and bytes(values["data"]) == data
        assert values["small"] == b"1"


async def test_what_is_refused_has_its_code(tmp_path: Path) -> None:
    async with grpc_house(tmp_path, most=1000) as made:
        await made.house.serve("m")
        raw = made.channel.unary_unary("/org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions")
        for call, code, details in (
            (raw(b"\x0a\x01\xff"), "INVALID_ARGUMENT", "PredictionsRequest"),
            (made.call("Predictions", prediction("m", data=bytes(2000))), "RESOURCE_EXHAUSTED", ""),
            (made.channel.unary_unary("/a.B/C")(b""), "UNIMPLEMENTED", ""),
        ):
            told = await failure(made, call)

            assert (told[0], details in told[1]) == (code, True), told


async def test_a_cancelled_call_ends_its_job_in_the_queue(tmp_path: Path, jobs: list[Job]) -> None:
    async with grpc_house(tmp_path) as made:
        made.house.engine.batch_time = lambda _size: 1e6
        model = await made.house.serve("m")
        calls = [made.call("Predictions", prediction("m", data=b"1")) for _ in range(2)]
        await until(lambda: len(jobs) == 2)
        assert [job.phase for job in jobs] != [JobPhase.ENDED] * 2
        for call in calls:
            call.cancel()

        await until(lambda: all(job.phase is JobPhase.ENDED for job in jobs))
        assert model.waiting == 0


async def test_the_calls_deadline_is_the_jobs(tmp_path: Path, jobs: list[Job]) -> None:
    async with grpc_house(tmp_path) as made:
        await made.house.serve("m")

        with pytest.raises(made.grpc.aio.AioRpcError, match="DEADLINE_EXCEEDED"):
            await made.call("Predictions", prediction("m", data=b"1"), timeout=2.0)  # the daemon's clock stands still
        await until(lambda: all(job.phase is JobPhase.ENDED for job in jobs))
        assert jobs[0].budget is not None
        assert 0 < jobs[0].budget.seconds < 2.1  # gRPC rounds what remains up
