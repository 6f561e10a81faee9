"""Predictions and health: what is asked of a model, and what becomes of a request on its way."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.api.house import House
from tsctl.daemon.core.job import Job, Param, Reply
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.wire import Declared, Input


def serve(house: House, name: str = "m", version: str = "1.0", workers: int = 1, config: str = "") -> ModelVersion:
    return asyncio.run(house.serve(name, version, workers, config))


def jobs(house: House) -> list[Job]:
    """Every job that a worker was ever given."""
    return [job for worker in house.engine.workers for batch in worker.batches for job in batch.jobs]


def slowly(house: House) -> None:
    """Let every batch take ten seconds."""
    house.engine.batch_time = lambda size: 10.0


def test_the_handlers_answer_is_the_answer(house: House) -> None:
    serve(house)
    house.engine.answer = lambda job: Reply(418, b"tea", "Teapot", [("Content-Type", "text/plain"), ("X-A", "b")])

    peer = house.send("POST", "/predictions/m")

    (answer,) = peer.answers
    assert (answer.status, answer.body) == (418, b"tea")
    assert (answer.headers["content-type"], answer.headers["x-a"]) == ("text/plain", "b")
    assert peer.transport.written.startswith(b"HTTP/1.1 418 Teapot\r\n")


@pytest.mark.parametrize(
    ("content_type", "body", "params"),
    [
        pytest.param("image/png", b"\x89", [Param("body", "image/png", b"\x89")], id="a raw body"),
        pytest.param("application/x-www-form-urlencoded", b"a=1", [Param("a", "", b"1")], id="a form"),
    ],
)
def test_a_handler_gets_the_parameters_of_the_body(
    house: House, content_type: str, body: bytes, params: list[Param]
) -> None:
    serve(house)

    house.send("POST", "/predictions/m", body, f"Content-Type: {content_type}")

    assert jobs(house)[0].params == params
    assert (jobs(house)[0].size, house.exchanges[0].request.body) == (sum(len(each.value) for each in params), b""), (
        "kept once"
    )


BOUNDARY = "b-8f3a"


def form_of(*parts: tuple[str, bytes, str]) -> tuple[bytes, str]:
    """Return a form with these parts, each a name, its value and its file's name, and the header of its type."""
    lines = b""
    for name, value, file in parts:
        named = f'; filename="{file}"' if file else ""
        lines += (
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'.encode() + value + b"\r\n"
        )
    return lines + f"--{BOUNDARY}--".encode(), f"Content-Type: multipart/form-data; boundary={BOUNDARY}"


BUILT_IN = Declared([Input("data", "image")], batches=True, built_in=True)


@pytest.mark.parametrize("declared", [None, BUILT_IN], ids=["TorchServe's form", "a built-in handler"])
def test_two_files_of_one_name_are_refused_and_none_is_lost(house: House, declared: Declared | None) -> None:
    house.engine.declared = declared
    serve(house)

    peer = house.send("POST", "/predictions/m", *form_of(("image", b"1", "a.png"), ("image", b"2", "b.png")))

    told = json.loads(peer.bodies[0])
    assert (peer.statuses, told["code"]) == ([400], 400)
    assert told["message"].startswith("The form has 2 parts named `image`, and the handler takes one part of a name.")


@pytest.mark.parametrize(
    ("declared", "status"),
    [
        pytest.param(None, 200, id="of TorchServe's form the last counts"),
        pytest.param(BUILT_IN, 400, id="a built-in handler would lose one"),
        pytest.param(Declared([Input("tags", "json")], batches=True), 200, id="a typed handler gets all"),
    ],
)
def test_fields_of_one_name(house: House, declared: Declared | None, status: int) -> None:
    house.engine.declared = declared
    serve(house)

    peer = house.send("POST", "/predictions/m", *form_of(("tags", b"1", ""), ("tags", b"2", "")))

    assert peer.statuses == [status]
    if status == 200:
        assert [param.value for param in jobs(house)[0].params] == [b"1", b"2"]


TYPED = Declared([Input("text", "text"), Input("top", "json")], batches=False)
QUERY_ROUTES = ("/predictions/m", "/predictions/m/1.0", "/v1/models/m:predict", "/models/m/invoke", "/m/predict")


@pytest.mark.parametrize("target", QUERY_ROUTES)
def test_a_part_and_a_parameter_of_one_name_are_refused_with_both(house: House, target: str) -> None:
    house.engine.declared = TYPED
    serve(house)

    peer = house.send("POST", f"{target}?top=5", *form_of(("text", b"a", ""), ("top", b"4", "")))

    message = json.loads(peer.bodies[0])["message"]
    assert (peer.statuses, message) == (
        [400],
        "`top` is in the query (`5`) and in the form (`4`). Send one of the two.",
    )


async def test_parameters_of_the_query_join_a_form_that_is_read_in_turns(tmp_path: Path) -> None:
    house = House(tmp_path, max_body=2**21)
    house.engine.declared = TYPED
    house.engine.answer = lambda job: Reply(200, " ".join(each.name for each in job.params).encode())
    await house.serve("m")

    answer = await house.ask("POST", "/predictions/m?top=5", *form_of(("text", bytes(2**20), "")))

    assert (answer.status, answer.body) == (200, b"text top")


def test_a_client_that_leaves_takes_its_waiting_job_with_it(house: House) -> None:
    slowly(house)
    model = serve(house)
    house.send("POST", "/predictions/m")
    house.send("POST", "/predictions/m")
    third = house.send("POST", "/predictions/m")
    assert len(model.queue) == 1

    third.finish()

    assert len(model.queue) == 0
    assert third.transport.closed


def test_a_client_that_closes_its_side_gets_what_is_running(house: House) -> None:
    slowly(house)
    serve(house)
    peer = house.send("POST", "/predictions/m", b"cat")

    peer.finish()
    house.clock.advance(10.0)

    assert peer.bodies == [b"cat"]
    assert peer.transport.closed


def test_what_runs_for_a_client_that_is_gone_is_answered_to_nobody(house: House) -> None:
    slowly(house)
    model = serve(house)
    peer = house.send("POST", "/predictions/m", b"cat")

    peer.leave()
    house.clock.advance(10.0)

    assert peer.answers == [] and model.metrics.codes == {}


def test_a_row_that_runs_on_its_own_is_cancelled_when_its_client_closes_its_side(house: House) -> None:
    slowly(house)
    model = serve(house, config="continuousBatching: true")
    peer = house.send("POST", "/predictions/m")
    assert model.running == 1

    peer.finish()

    assert model.by_rows and peer.transport.closed
