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

PROMPT = {"model": "m", "prompt": "Once"}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


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


def document_of(peer: Peer) -> Any:
    (answer,) = peer.answers
    return json.loads(answer.body)


def test_an_answer_that_is_joined_has_a_limit(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_answers, "MOST_TEXT", 10)
    peer, job = send(house, PROMPT)
    flow = Flow()
    job.stream(Piece(200, bytes(5), flow=flow))
    assert flow.told == ["drained"]
    job.stream(Piece(200, bytes(6), flow=flow))

    assert peer.statuses == [503]
    assert "more than 10 bytes; ask for it with `stream`" in document_of(peer)["message"]
    assert "refused" in flow.told


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
