"""Predictions and health: what is asked of a model, and what becomes of a request on its way."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.house import House, error, sentence
from tsctl.daemon.core.job import Job, Param, Reply
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import LoadFailure
from tsctl.handlers.wire import INSTANCES, Declared, Input


def serve(house: House, name: str = "m", version: str = "1.0", workers: int = 1, config: str = "") -> ModelVersion:
    return asyncio.run(house.serve(name, version, workers, config))


def jobs(house: House) -> list[Job]:
    """Every job that a worker was ever given."""
    return [job for worker in house.engine.workers for batch in worker.batches for job in batch.jobs]


def slowly(house: House) -> None:
    """Let every batch take ten seconds."""
    house.engine.batch_time = lambda size: 10.0


def test_a_prediction_is_answered_by_a_worker(house: House) -> None:
    serve(house)

    peer = house.send("POST", "/predictions/m", b"cat")

    assert (peer.statuses, peer.bodies) == ([200], [b"cat"])


def test_who_was_accepted_is_answered_whatever_time_the_archive_gives_its_clients(house: House) -> None:
    serve(house, config="clientTimeoutInMills: 1000\n")
    slowly(house)

    first, second = (house.send("POST", "/predictions/m", body) for body in (b"cat", b"dog"))
    house.clock.advance(20.0)

    assert [len(first.answers), second.statuses] == [1, [504]]


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE", "PATCH"])
def test_any_method_predicts(house: House, method: str) -> None:
    serve(house)

    peer = house.send(method, "/predictions/m", b"cat")

    assert peer.bodies == [b"cat"]


def test_the_handlers_answer_is_the_answer(house: House) -> None:
    serve(house)
    house.engine.answer = lambda job: Reply(418, b"tea", "Teapot", [("Content-Type", "text/plain"), ("X-A", "b")])

    peer = house.send("POST", "/predictions/m")

    (answer,) = peer.answers
    assert (answer.status, answer.body) == (418, b"tea")
    assert (answer.headers["content-type"], answer.headers["x-a"]) == ("text/plain", "b")
    assert peer.transport.written.startswith(b"HTTP/1.1 418 Teapot\r\n")


def test_an_error_reply_is_an_error_document(house: House) -> None:
    serve(house)
    house.engine.answer = lambda job: Reply(503, b"Prediction failed", error="InternalServerException")

    peer = house.send("POST", "/predictions/m")

    told = peer.statuses[0], json.loads(peer.bodies[0])
    assert told == error(503, "InternalServerException", "Prediction failed")


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
FORM = "Content-Type: application/x-www-form-urlencoded"
QUERY_ROUTES = ("/predictions/m", "/predictions/m/1.0", "/v1/models/m:predict", "/models/m/invoke", "/m/predict")


@pytest.mark.parametrize("target", QUERY_ROUTES)
@pytest.mark.parametrize(
    ("query", "body", "params"),
    [
        pytest.param("top=5", b"a", [("body", b"a"), ("top", b"5")], id="beside a body"),
        pytest.param("top=5&text=a%20b", b"", [("top", b"5"), ("text", b"a b")], id="without a body"),
        pytest.param(
            "top=5&top=6", b"a", [("body", b"a"), ("top", b"5"), ("top", b"6")], id="twice: the handler refuses"
        ),
        pytest.param("", b"a", [("body", b"a")], id="none"),
    ],
)
def test_parameters_of_the_query_are_inputs_of_a_typed_handler(
    house: House, target: str, query: str, body: bytes, params: list[tuple[str, bytes]]
) -> None:
    house.engine.declared = TYPED
    serve(house)

    house.send("POST", f"{target}?{query}", body)

    assert [(each.name, each.value) for each in jobs(house)[0].params] == params


@pytest.mark.parametrize("target", QUERY_ROUTES)
@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("topp=5", "Unknown parameter `topp` in the query; the handler takes text, top; did you mean `top`?"),
        ("top=5&zebra=2", "Unknown parameter `zebra` in the query; the handler takes text, top."),
    ],
)
def test_a_parameter_of_the_query_that_a_typed_handler_does_not_have_is_refused(
    house: House, target: str, query: str, sentence: str
) -> None:
    """It would be lost, and the answer be another one than the client means."""
    house.engine.declared = TYPED
    serve(house)

    peer = house.send("POST", f"{target}?{query}", b"a")

    told = json.loads(peer.bodies[0])["message"]
    assert (peer.statuses, told.replace(", model_name", "")) == ([400], sentence)
    assert house.registry.find("m").metrics.codes == {400: 1}


def test_the_model_of_an_invocation_is_no_parameter_of_its_handler(house: House) -> None:
    house.engine.declared = TYPED
    serve(house)

    assert house.send("POST", "/invocations?model_name=m&top=5", b"a").statuses == [200]


def test_the_field_that_names_the_model_of_an_invocation_does_not_reach_a_typed_handler(house: House) -> None:
    house.engine.declared = TYPED
    serve(house)

    house.send("POST", "/invocations", b"model_name=m&text=a", FORM)

    assert [(each.name, each.value) for each in jobs(house)[0].params] == [("text", b"a")]


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


@pytest.mark.parametrize("declared", [None, BUILT_IN], ids=["TorchServe's form", "a built-in handler"])
def test_other_handlers_do_not_get_the_query_as_in_torchserve(house: House, declared: Declared | None) -> None:
    house.engine.declared = declared
    serve(house)

    house.send("POST", "/predictions/m?data=5", b"a")

    assert [(each.name, each.value) for each in jobs(house)[0].params] == [("body", b"a")]


def test_the_body_of_a_job_is_kept_once(house: House) -> None:
    slowly(house)
    serve(house)

    house.send("POST", "/predictions/m", b"cat")

    assert house.exchanges[0].request.body == b""
    assert jobs(house)[0].size == 3


@pytest.mark.parametrize(
    ("target", "url_path"),
    [("/predictions/m/1.0/v1/chat?x=1", "v1/chat"), ("/predictions/m/1.0", ""), ("/predictions/m", "")],
)
def test_a_handler_gets_the_headers_and_the_rest_of_the_path(house: House, target: str, url_path: str) -> None:
    serve(house)

    peer = house.send("POST", target, b"", "X-Name: Value")

    (job,) = jobs(house)
    assert ("X-Name", "Value") in job.headers
    assert list(job.headers)[-2:] == [("url_path", url_path), ("explain", "False")]
    assert peer.answers[0].headers["x-request-id"] == job.id


async def test_the_version_chooses_the_model(house: House) -> None:
    await house.serve("m", "1.0")
    await house.serve("m", "2.0")

    house.send("POST", "/predictions/m")
    house.send("POST", "/predictions/m/2.0")

    assert [worker.spec.model_version for worker in house.engine.workers if worker.batches] == ["1.0", "2.0"]


@pytest.mark.parametrize(
    ("method", "target", "answer"),
    [
        pytest.param("POST", "/predictions", error(
            404, "ResourceNotFoundException", "Requested resource is not found, please refer to API document."),
            id="no model in the path"),
        pytest.param("POST", "/predictions/x", error(404, "ModelNotFoundException", "Model not found: x"),
            id="an unknown model"),
        pytest.param("POST", "/predictions/m/9", error(
            404, "ModelVersionNotFoundException", "Model version: 9 does not exist for model: m"),
            id="an unknown version"),
        pytest.param("POST", "/", error(
            405, "MethodNotAllowedException", "Requested method is not allowed, please refer to API document."),
            id="the root"),
        pytest.param("GET", "/ping/pong", error(
            404, "ResourceNotFoundException", "Requested resource is not found, please refer to API document."),
            id="more than a ping"),
    ],
)  # fmt: skip
def test_what_cannot_be_predicted(house: House, method: str, target: str, answer: tuple[int, object]) -> None:
    serve(house)

    peer = house.send(method, target)

    assert (peer.statuses[0], json.loads(peer.bodies[0])) == answer
    assert jobs(house) == []


def test_a_broken_form_is_refused_before_it_is_queued(house: House) -> None:
    serve(house)

    peer = house.send("POST", "/predictions/m", b"x", "Content-Type: multipart/form-data; boundary=b")

    assert peer.statuses == [400]
    assert jobs(house) == []


def test_a_full_queue_is_told_with_the_time_to_come_again(house: House) -> None:
    slowly(house)
    model = serve(house, config="batchSize: 1")

    peers = [house.send("POST", "/predictions/m") for _ in range(4)]  # one runs, two wait

    (answer,) = peers[3].answers
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert json.loads(answer.body)["type"] == "ServiceUnavailableException"
    assert model.waiting == 2


def test_a_model_without_workers_says_what_to_do(house: House) -> None:
    serve(house, workers=0)

    peer = house.send("POST", "/predictions/m")

    assert peer.statuses == [503]
    assert "Please use scale workers API to add workers." in json.loads(peer.bodies[0])["message"]


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


def no_model(house: House) -> None: ...


def one_ready(house: House) -> None:
    serve(house)


def none_wanted(house: House) -> None:
    serve(house, workers=0)


def still_loading(house: House) -> None:
    house.engine.load_time = 100.0
    serve(house)


def failed(house: House) -> None:
    house.engine.load_failure = LoadFailure("ValueError: no")
    serve(house)


def one_lost(house: House) -> None:
    serve(house, workers=2)
    house.engine.load_time = 100.0
    house.engine.workers[0].die()


@pytest.mark.parametrize(
    ("arrange", "healthy"),
    [
        pytest.param(no_model, True, id="without models"),
        pytest.param(one_ready, True, id="with the workers that are wanted"),
        pytest.param(none_wanted, True, id="with a model that wants none"),
        pytest.param(still_loading, True, id="while the first worker loads"),
        pytest.param(failed, False, id="with a model that cannot be loaded"),
        pytest.param(one_lost, True, id="with a worker too few, and one that answers"),
    ],
)
def test_health(house: House, arrange: Callable[[House], None], healthy: bool) -> None:
    arrange(house)

    peer = house.send("GET", "/ping")

    told = peer.statuses[0], json.loads(peer.bodies[0])
    assert told == (sentence("Healthy") if healthy else sentence("Unhealthy", 500))


@pytest.mark.parametrize(
    ("declared", "target", "body", "name"),
    [
        pytest.param(TYPED, "/v1/models/m:predict", b' {"instances": ["a"]}', INSTANCES, id="of a typed handler"),
        pytest.param(TYPED, "/predictions/m", b'{"instances": ["a"]}', "body", id="on another route"),
        pytest.param(TYPED, "/v1/models/m:predict", b"[1]", "body", id="no object"),
        pytest.param(None, "/v1/models/m:predict", b'{"instances": ["a"]}', "body", id="of TorchServe's form"),
        pytest.param(
            Declared([Input("instances", "json")], batches=False), "/v1/models/m:predict", b'{"instances": 1}', "body",
            id="of one with a parameter of this name"),
    ],
)  # fmt: skip
def test_the_instances_of_kserves_first_protocol_are_marked_for_typed_handlers(
    house: House, declared: Declared | None, target: str, body: bytes, name: str
) -> None:
    house.engine.declared = declared
    serve(house)

    house.send("POST", target, body)

    assert [(each.name, each.value) for each in jobs(house)[0].params] == [(name, body)]
