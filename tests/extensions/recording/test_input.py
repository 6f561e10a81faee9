"""The control socket returns an input that can be sent again: the latest recorded one, or the archive's sample."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.http.peer import Answer
from tsctl.daemon.core.job import Param, Reply
from tsctl.daemon.extensions.recording.recorder import MOST_BYTES, RECORDED, sample_of
from tsctl.daemon.models.archives.sample import Sample
from tsctl.daemon.models.version import ModelVersion

INPUT = "/tsctl/input/m"
RECORDING = "recordInput: true"


def serve(house: House, config: str = "") -> ModelVersion:
    return asyncio.run(house.serve("m", config=config))


def post(house: House, body: bytes, *headers: str, target: str = "/predictions/m") -> None:
    house.send("POST", target, body, *headers)
    house.clock.advance(1.0)


def ask(house: House, target: str = INPUT) -> Answer:
    return asyncio.run(house.ask("GET", target))


def said(answer: Answer) -> tuple[int, str]:
    return answer.status, json.loads(answer.body)["message"]


def test_nothing_is_kept_unless_somebody_asks_for_it(house: House) -> None:
    serve(house)
    post(house, b"secret")

    assert house.registry.find("m").sample is None
    assert said(ask(house)) == (
        404,
        "No sample input for m/1.0: its archive has no `warmup` sample, and no request is kept."
        " Name a file, or record the next request with `tsctl set m/1.0 --record-input`.",
    )


def test_an_unknown_version_has_no_input(house: House) -> None:
    serve(house)

    assert said(ask(house, f"{INPUT}/9")) == (404, "Model version: 9 does not exist for model: m")


def test_the_latest_request_is_kept_as_it_came(house: House) -> None:
    serve(house, RECORDING)
    post(house, b"first")
    post(house, b'{"a": 1}', "Content-Type: application/json")

    answer = ask(house)

    assert (answer.status, answer.body) == (200, b'{"a": 1}')
    assert (answer.headers["content-type"], answer.headers["x-tsctl-input"]) == ("application/json", "recorded")


def test_a_request_without_a_content_type_is_told_without_one(house: House) -> None:
    serve(house, RECORDING)
    post(house, b"raw")

    assert "content-type" not in ask(house).headers


def test_it_can_be_asked_for_while_the_model_serves(house: House) -> None:
    serve(house)
    post(house, b"before")
    asyncio.run(house.tell("PATCH", "/models/m?record_input=true"))

    post(house, b"after")

    assert ask(house).body == b"after"


@pytest.mark.parametrize(
    ("target", "body"),
    [
        pytest.param("/explanations/m", b"why", id="an explanation, which is another question"),
        pytest.param("/models/m/invoke?a=1", b"in", id="SageMaker's, whose query counts too"),
        pytest.param("/predictions/m", b"bad", id="what the handler refused"),
    ],
)
def test_what_is_no_plain_prediction_is_not_kept(house: House, target: str, body: bytes) -> None:
    house.engine.answer = lambda job: Reply(400 if job.params[0].value == b"bad" else 200, b"x")
    serve(house, RECORDING)
    post(house, body, target=target)

    status, message = said(ask(house))

    assert status == 404
    assert "no request has come that could be kept" in message


def test_a_body_that_is_too_large_is_not_kept(tmp_path: Path) -> None:
    house = House(tmp_path, max_body=MOST_BYTES + 1)
    serve(house, RECORDING)
    post(house, bytes(MOST_BYTES))
    post(house, bytes(MOST_BYTES + 1))

    assert len(ask(house).body) == MOST_BYTES


def put_sample(house: House, config: str, content: bytes | None = b"pixels") -> Any:
    directory = house.put("m", config=config)
    if content is not None:
        (directory / "sample.jpg").write_bytes(content)
    return asyncio.run(house.tell("POST", "/models?url=m"))


def test_without_a_recorded_request_it_is_the_archives_sample(house: House) -> None:
    put_sample(house, "warmup: sample.jpg")

    answer = ask(house)

    assert (answer.status, answer.body, answer.headers["x-tsctl-input"]) == (200, b"pixels", "warmup")
    assert "content-type" not in answer.headers


@pytest.mark.parametrize("config", ["warmup: [sample.jpg, other.jpg]", "warmup: {file: [sample.jpg]}"])
def test_of_several_samples_it_is_the_first(house: House, config: str) -> None:
    put_sample(house, config)

    assert ask(house).body == b"pixels"


def test_the_archives_sample_may_have_a_content_type(house: House) -> None:
    put_sample(house, "warmup: {file: elsewhere/sample.jpg, contentType: image/jpeg}")

    answer = ask(house)

    assert (answer.body, answer.headers["content-type"]) == (b"pixels", "image/jpeg")


@pytest.mark.parametrize("config", ["warmup: sample.jpg", "warmup: 3", "warmup: {}", "warmup: {file: [1]}"])
def test_a_sample_that_is_not_there_is_none(house: House, config: str) -> None:
    put_sample(house, config, content=None)

    assert ask(house).status == 404


def test_a_tcp_address_does_not_return_it(tmp_path: Path) -> None:
    house = House(tmp_path, own=False)
    serve(house, RECORDING)
    post(house, b"secret")

    assert ask(house).status == 404


def test_what_was_recorded_is_forgotten_when_nobody_wants_it_any_more(house: House) -> None:
    model = serve(house, RECORDING)
    post(house, b"a")
    assert model.sample == Sample(b"a", "", RECORDED)
    house.send("POST", "/predictions/m", b"b")

    asyncio.run(house.tell("PATCH", "/models/m?record_input=false"))
    house.clock.advance(1.0)

    assert model.sample is None
    assert model.watchers == ()


def test_a_request_of_several_inputs_is_recorded_as_the_form_that_repeats_it(house: House) -> None:
    serve(house)
    sample = sample_of([Param("data", "", b"\x00\r\n--"), Param("more", "text/plain", b"")])
    assert sample is not None

    post(house, sample.body, f"Content-Type: {sample.content_type}")

    (job,) = (job for worker in house.engine.workers for batch in worker.batches for job in batch.jobs)
    assert {(each.name, bytes(each.value)) for each in job.params} == {("data", b"\x00\r\n--"), ("more", b"")}


def test_a_request_that_no_form_repeats_is_not_recorded() -> None:
    assert sample_of([]) is None
    assert sample_of([Param("a", "", b""), Param('"', "", b"")]) is None


async def test_a_version_that_is_built_anew_of_the_same_files_keeps_what_was_recorded(house: House) -> None:
    old = await house.serve("m", config=RECORDING)
    old.sample = Sample(b"cat", "image/jpeg", RECORDED)

    new = asyncio.ensure_future(house.registrar.renew(old, "built anew"))
    await house.until(new.done)

    assert new.result() is not old
    assert new.result().sample is old.sample


async def test_another_archive_begins_without(house: House) -> None:
    old = await house.serve("m", config=RECORDING)
    old.sample = Sample(b"cat", "image/jpeg", RECORDED)
    house.put("m", config=RECORDING, place="other")

    await house.tell("POST", "/models?url=other&replace=true")

    assert house.registry.find("m") is not old
    assert house.registry.find("m").sample is None
