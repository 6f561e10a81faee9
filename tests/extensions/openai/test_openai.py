"""OpenAI's API over a model of texts: whole answers, streams, what a handler words itself, and what goes wrong."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.api.inference.test_streaming import Flow
from tests.http.peer import Peer
from tsctl.daemon.api.inference import text_answers
from tsctl.daemon.api.inference.paths import model_named, predicts
from tsctl.daemon.core.job import Job, Piece, Reply
from tsctl.daemon.http.messages import error_body
from tsctl.handlers.wire import Declared, Input

PROMPT = {"model": "m", "prompt": "Once"}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
JSON = [("Content-Type", "application/json")]


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    house.engine.batch_time = lambda _size: 10.0
    house.engine.answer = lambda _job: Reply(200, b" end")
    asyncio.run(house.serve("m"))
    return house


def send(house: House, document: dict[str, Any], **members: object) -> tuple[Peer, Job]:
    """Send a request, and return its client and the job that it became."""
    route = "/v1/chat/completions" if "messages" in document else "/v1/completions"
    peer = house.send("POST", route, json.dumps({**document, **members}).encode())
    return peer, house.engine.workers[0].batches[0].jobs[0]


def events(peer: Peer) -> list[Any]:
    """Return the documents of the events, which end as the API's."""
    (answer,) = peer.answers
    assert answer.headers["content-type"].startswith("text/event-stream")
    *found, last, nothing = answer.body.decode().split("\n\n")
    assert (last, nothing) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: "))["choices"][0] for event in found]


def document_of(peer: Peer) -> Any:
    (answer,) = peer.answers
    return json.loads(answer.body)


def test_the_handler_is_told_which_call_it_answers(house: House) -> None:
    _, job = send(house, CHAT)

    assert ("url_path", "v1/chat/completions") in job.headers
    assert {param.name for param in job.params} == {"model", "messages", "data"}


def test_a_whole_text_is_one_document(house: House) -> None:
    peer, _ = send(house, PROMPT)
    house.clock.advance(10.0)

    found = document_of(peer)
    assert found["choices"] == [{"index": 0, "text": " end", "logprobs": None, "finish_reason": "stop"}]
    assert (found["model"], found["object"], found["id"][:5]) == ("m", "text_completion", "cmpl-")


def test_pieces_are_joined_for_a_client_that_wants_no_stream(house: House) -> None:
    peer, job = send(house, CHAT)
    flow = Flow()
    for piece in (b"Gr\xc3", b"\xbc\xc3\x9fe,"):
        job.stream(Piece(200, piece, flow=flow))
    house.clock.advance(10.0)

    assert document_of(peer)["choices"][0]["message"] == {"role": "assistant", "content": "Grüße, end"}
    assert flow.told == ["drained", "drained"]


def test_pieces_are_chunks_and_no_character_is_cut(house: House) -> None:
    peer, job = send(house, CHAT, stream=True)
    for piece in (b"Gr\xc3", b"\xbc\xc3", b"\x9fe,"):
        job.stream(Piece(200, piece))
    house.clock.advance(10.0)

    first, *middle, last = events(peer)
    assert first["delta"] == {"role": "assistant", "content": ""}
    assert [each["delta"]["content"] for each in middle] == ["Gr", "ü", "ße,", " end"]
    assert (last["delta"], last["finish_reason"]) == ({}, "stop")


def test_a_whole_text_is_a_stream_for_a_client_that_wants_one(house: House) -> None:
    peer, _ = send(house, PROMPT, stream=True)
    house.clock.advance(10.0)

    assert [(each["text"], each["finish_reason"]) for each in events(peer)] == [(" end", None), ("", "stop")]


@pytest.mark.parametrize("stream", [False, True])
def test_a_document_that_the_handler_worded_is_passed_on(house: House, stream: bool) -> None:
    own = b'{"choices": [{"text": "mine"}]}'
    house.engine.answer = lambda _job: Reply(200, own, headers=JSON)
    peer, _ = send(house, PROMPT, stream=stream)
    house.clock.advance(10.0)

    assert peer.bodies == [own]


def test_events_that_the_handler_worded_are_passed_on(house: House) -> None:
    house.engine.answer = lambda _job: Reply(200, b"data: [DONE]\n\n")
    peer, job = send(house, PROMPT, stream=True)
    job.stream(Piece(200, b'data: {"choices": []}\n\n'))
    house.clock.advance(10.0)

    assert peer.bodies == [b'data: {"choices": []}\n\ndata: [DONE]\n\n']


def test_a_text_in_json_is_that_text(house: House) -> None:
    house.engine.answer = lambda _job: Reply(200, b'"said"', headers=JSON)
    peer, _ = send(house, PROMPT)
    house.clock.advance(10.0)

    assert document_of(peer)["choices"][0]["text"] == "said"


def test_an_error_before_the_answer_has_its_status_and_the_apis_member(house: House) -> None:
    house.engine.answer = lambda _job: Reply(507, b"boom", error="OutOfMemory")
    peer, _ = send(house, PROMPT, stream=True)
    house.clock.advance(10.0)

    assert peer.statuses == [507]
    assert document_of(peer)["error"] == {"message": "boom", "type": "OutOfMemory", "param": None, "code": 507}


def test_an_error_within_a_stream_is_its_last_event(house: House) -> None:
    house.engine.answer = lambda _job: Reply(503, b"boom", error="InternalServerException")
    peer, job = send(house, PROMPT, stream=True)
    job.stream(Piece(200, b"some"))
    house.clock.advance(10.0)

    (answer,) = peer.answers
    last = json.loads(answer.body.decode().split("\n\n")[-2].removeprefix("data: "))
    assert last["error"]["message"] == "boom"
    assert b"[DONE]" not in answer.body


def test_an_answer_that_is_joined_has_a_limit(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_answers, "MOST_TEXT", 10)
    peer, job = send(house, PROMPT)
    flow = Flow()
    job.stream(Piece(200, bytes(11), flow=flow))

    assert peer.statuses == [503]
    assert "more than 10 bytes; ask for it with `stream`" in document_of(peer)["message"]
    assert "refused" in flow.told


def test_a_client_that_leaves_takes_its_request_along(house: House) -> None:
    for _ in range(2):
        send(house, PROMPT)  # one runs, and one is at the worker
    waiting = house.send("POST", "/v1/completions", json.dumps(PROMPT).encode())
    waiting.leave()

    house.clock.advance(30.0)

    assert len(house.engine.workers[0].batches) == 2


def test_what_is_not_there_is_said(house: House) -> None:
    async def answers() -> list[int]:
        unknown = await house.ask("POST", "/v1/completions", json.dumps({**PROMPT, "model": "x"}).encode())
        assert json.loads(unknown.body)["error"]["message"] == "Model not found: x"
        got = await house.ask("GET", "/v1/chat/completions")
        elsewhere = await house.ask("POST", "/v1/embeddings")
        return [unknown.status, got.status, elsewhere.status]

    assert asyncio.run(answers()) == [404, 405, 404]


def test_models_are_listed_as_both_apis_list_them(house: House) -> None:
    found = json.loads(asyncio.run(house.ask("GET", "/v1/models")).body)

    assert [model["id"] for model in found["data"]] == found["models"] == ["m"]
    assert json.loads(asyncio.run(house.ask("GET", "/v1/models/m")).body) == {"name": "m", "ready": True}


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "m", "prompt": "\xff"}',
        b'{"model": "\xff", "prompt": "a"}',
        b'{"\xff": 1}',
        b'{"model": "m", "prompt": ' + b"[" * 9000,
        b'{"model": "m", "prompt": "a", "x": ' + b"[" * 9000,
    ],
)
@pytest.mark.parametrize("route", ["/v1/completions", "/v1/chat/completions"])
async def test_bytes_that_are_no_text_and_nested_brackets_are_a_bad_request(
    tmp_path: Path, route: str, body: bytes
) -> None:
    house = House(tmp_path)
    await house.serve("m")

    assert (await house.ask("POST", route, body)).status == 400


@pytest.mark.parametrize("chat", [False, True])
async def test_a_large_request_is_read_in_turns(tmp_path: Path, chat: bool) -> None:
    house = House(tmp_path, max_body=1_000_000)
    await house.serve("m")
    text = 'a "long" text\n' * 20_000
    said = {"messages": [{"role": "user", "content": text}]} if chat else {"prompt": text}
    route = "/v1/chat/completions" if chat else "/v1/completions"
    seen: list[bytes] = []

    def reply(job: Job) -> Reply:
        seen.append(bytes(job.params[-1].value))
        return Reply(200, b"{}")

    house.engine.answer = reply
    answer = asyncio.ensure_future(house.ask("POST", route, json.dumps({"model": "m", **said}).encode()))
    for _ in range(5):
        await asyncio.sleep(0)

    assert not answer.done()
    assert (await answer).status == 200
    assert seen == [(f"user: {text}\nassistant:" if chat else text).encode()]


@pytest.mark.parametrize(
    "path", [["v1", "models"], ["v1", "completions"], ["v1", "chat", "completions"], ["v1", "models", "m:predict"]]
)
def test_its_paths_are_inference_and_only_the_others_name_a_model(path: list[str]) -> None:
    assert predicts(path)
    assert model_named(path) == (None if len(path) < 3 or path[1] == "chat" else "m")
    assert not predicts(["v1", "chat"])


@pytest.mark.parametrize("target", ["/v1/completions", "/v1/chat/completions?a=b", "/v1/chat/none"])
def test_an_error_below_its_paths_is_in_its_words_and_in_torchserves(target: str) -> None:
    document = error_body(503, "Kind", "no luck", target)

    assert document.pop("error") == {"message": "no luck", "type": "Kind", "param": None, "code": 503}
    assert document == error_body(503, "Kind", "no luck", "/predictions/m")


def test_a_piece_with_the_status_of_an_error_ends_the_stream_with_it(house: House) -> None:
    peer, job = send(house, CHAT, stream=True)
    job.stream(Piece(200, b"Once"))

    job.stream(Piece(500, b"boom"))
    house.clock.advance(10.0)

    (answer,) = peer.answers
    assert json.loads(answer.body.decode().split("\n\n")[-2].removeprefix("data: "))["error"]["message"] == "boom"


def test_a_query_is_refused_by_name(house: House) -> None:
    peer = house.send("POST", "/v1/completions?top=5", json.dumps(PROMPT).encode())

    assert peer.statuses == [400]
    assert "Unknown parameter `top` in the query" in peer.bodies[0].decode()


TYPED = Declared([Input("text", "text"), Input("top_k", "json")], batches=False)


@pytest.mark.parametrize(
    ("member", "value", "reason"),
    [
        ("zebra", 1, "`zebra` is no member of the API, nor an input of the handler: text, top_k."),
        ("min_p", 0.5, "`min_p` is no member of the API"),
        ("tools", [{"type": "function"}], "`tools` is [{"),
        ("logprobs", True, "`logprobs` is true, which this model does not serve: it answers with a text alone."),
        ("response_format", {"type": "json_object"}, "`response_format` is {"),
    ],
)
def test_what_a_typed_handler_would_not_see_is_refused_by_name(
    house: House, member: str, value: object, reason: str
) -> None:
    house.registry.find("m").learn(TYPED, ())

    peer = house.send("POST", "/v1/completions", json.dumps({**PROMPT, member: value}).encode())

    assert peer.statuses == [400]
    assert document_of(peer)["error"]["message"].startswith(reason)


@pytest.mark.parametrize("declared", [TYPED, None], ids=["a typed handler", "one that sees the row"])
def test_what_clients_always_send_is_taken(house: House, declared: Declared | None) -> None:
    house.registry.find("m").learn(declared, ())
    usual = {"temperature": 0.7, "max_tokens": 5, "stop": ["a"], "logprobs": None, "tools": [], "top_k": 3, "user": "x"}
    more = {} if declared else {"zebra": 1, "tools": [{"type": "function"}]}

    _, job = send(house, CHAT, **{**usual, **more})

    assert {*usual, *more} <= {each.name for each in job.params}
