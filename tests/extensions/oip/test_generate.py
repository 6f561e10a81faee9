"""Triton's `generate` and `generate_stream`: texts in JSON where a model declares one, else refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.api.inference.test_streaming import Flow
from tests.http.peer import Peer
from tsctl.daemon.core.job import Job, Param, Piece, Reply
from tsctl.daemon.extensions.sequences.marks import read_mark
from tsctl.handlers.wire import Declared, Input

GENERATE, STREAM = "/v2/models/m/generate", "/v2/models/m/generate_stream"
TEXT = Declared([Input("prompt", "text"), Input("top", "json"), Input("rows", "array")], batches=False)
PLAIN = [("Content-Type", "text/plain")]


async def serving(root: Path, declared: Declared | None = TEXT, config: str = "") -> House:
    house = House(root, max_body=200_000)
    model = await house.serve("m", config=config)
    if declared is not None:
        model.learn(declared, ())
    house.engine.answer = lambda job: Reply(200, b"Once upon", headers=PLAIN)
    return house


def last_job(house: House) -> Job:
    return house.engine.workers[-1].batches[-1].jobs[-1]


async def ask(house: House, target: str = GENERATE, **members: Any) -> tuple[int, Any]:
    return await house.tell("POST", target, json.dumps(members).encode())


def events(peer: Peer) -> list[Any]:
    (answer,) = peer.answers
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    *found, end = answer.body.decode().split("\n\n")
    assert end == ""
    return [json.loads(each.removeprefix("data: ")) for each in found]


@pytest.mark.parametrize(
    ("members", "params"),
    [
        ({"text_input": "a"}, [Param("prompt", "", b"a")]),
        ({"prompt": "a", "top": 3}, [Param("prompt", "", b"a"), Param("top", "", b"3")]),
        ({"text_input": "a", "parameters": {"top": 3, "stream": False}},
         [Param("prompt", "", b"a"), Param("top", "", b"3")]),
        ({"text_input": "a", "rows": [[1, 2]]},
         [Param("prompt", "", b"a"), Param("rows", "application/json", b"[[1, 2]]")]),
        ({"text_input": "ä" * 20_000}, [Param("prompt", "", ("ä" * 20_000).encode())]),
    ],
    ids=["Triton's name", "the model's names", "in parameters", "an array", "a long text"],
)  # fmt: skip
async def test_members_are_the_models_inputs(tmp_path: Path, members: Any, params: list[Param]) -> None:
    house = await serving(tmp_path)

    told = await ask(house, id="7", **members)

    assert told == (200, {"id": "7", "model_name": "m", "model_version": "1.0", "text_output": "Once upon"})
    assert list(last_job(house).params) == params
    assert last_job(house).infer is None


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (
            {"text_input": "a", "topp": 3},
            "`topp` is no input of the model, which takes prompt, top, rows; did you",
        ),
        ({"text_input": "a", "parameters": {"temperature": 1}}, "`temperature` is no input of the model"),
        ({"text_input": "a", "prompt": "b"}, "both `text_input` and `prompt`"),
        ({"text_input": "a", "top": 1, "parameters": {"top": 2}}, "`top` twice"),
        ({"text_input": 5}, "`prompt` is invalid"),
        ({"text_input": "a", "parameters": {"stream": True}}, "generate_stream answers piece by piece"),
        ({"text_input": "a", "parameters": {"priority": 1}}, "The parameter `priority` of the request is 1"),
        ({"text_input": "a", "parameters": [1]}, "`parameters` is invalid"),
    ],
)
async def test_what_is_not_served_is_refused_by_name(tmp_path: Path, members: Any, reason: str) -> None:
    house = await serving(tmp_path)

    status, document = await ask(house, **members)

    assert status == 400
    assert reason in document["error"]
    assert not house.engine.workers[-1].batches


@pytest.mark.parametrize("body", [b"{", b"[1]", b"", b"[" * 40_000])
async def test_what_is_no_object_is_refused(tmp_path: Path, body: bytes) -> None:
    house = await serving(tmp_path)

    assert (await house.tell("POST", GENERATE, body))[0] == 400


@pytest.mark.parametrize("declared", [None, Declared([Input("rows", "array")], batches=True)], ids=["none", "an array"])
@pytest.mark.parametrize("target", [GENERATE, STREAM, "/v2/models/m/versions/1.0/generate"])
async def test_a_model_without_a_text_is_refused_by_name(
    tmp_path: Path, declared: Declared | None, target: str
) -> None:
    house = await serving(tmp_path, declared)

    status, document = await ask(house, target, text_input="a")

    assert (status, document["type"]) == (501, "NotServedException")
    assert document["error"].startswith("Model m declares no text, which /generate and /generate_stream take")


async def test_declared_tensors_of_text_are_served_with_their_names(tmp_path: Path) -> None:
    config = (
        "inputs: [{name: a, datatype: BYTES, shape: [1]}, {name: top, datatype: INT32, shape: [1], optional: true}]\n"
        "outputs: [{name: o, datatype: BYTES, shape: [1]}]\n"
    )
    house = await serving(tmp_path, None, config)
    output = {"name": "o", "datatype": "BYTES", "shape": [1], "data": ["Once"]}
    house.engine.answer = lambda job: Reply(200, json.dumps({"outputs": [output]}).encode())

    told = await ask(house, text_input="b", top=3, parameters={"temperature": 0.5})

    assert told == (200, {"model_name": "m", "model_version": "1.0", "o": "Once"})
    assert list(last_job(house).params) == [Param("a", "", b"\1\0\0\0b"), Param("top", "", b"\3\0\0\0")]
    assert getattr(last_job(house).infer, "parameters", None) == {"temperature": 0.5}


async def test_the_parameters_of_a_sequence_are_its_headers(tmp_path: Path) -> None:
    house = await serving(tmp_path, config="sequenceBatching: true\nmaxNumSequence: 4\n")

    assert (await ask(house, text_input="a", parameters={"sequence_id": 7, "sequence_start": True}))[0] == 200

    assert read_mark(last_job(house).headers).id == "7"


async def begun(house: House, target: str) -> tuple[Peer, Job]:
    house.engine.batch_time = lambda size: 10.0
    house.engine.answer = lambda job: Reply(200, b"")
    peer = house.send("POST", target, b'{"text_input": "a"}')
    await house.until(lambda: house.engine.workers[-1].batches)
    return peer, last_job(house)


async def test_a_stream_has_an_event_for_each_piece(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    peer, job = await begun(house, STREAM)
    flow = Flow()

    job.stream(Piece(200, b"Once \xc3", flow=flow))
    job.stream(Piece(200, b"\xa4"))
    house.clock.advance(10.0)

    assert [each["text_output"] for each in events(peer)] == ["Once ", "ä"]
    assert {each["model_name"] for each in events(peer)} == {"m"}


async def test_generate_joins_the_pieces(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    peer, job = await begun(house, GENERATE)

    job.stream(Piece(200, b"Once \xc3"))
    job.stream(Piece(200, b"\xa4"))
    house.clock.advance(10.0)

    assert json.loads(peer.bodies[0])["text_output"] == "Once ä"


async def test_a_whole_answer_is_one_event(tmp_path: Path) -> None:
    house = await serving(tmp_path)

    peer = house.send("POST", STREAM, b'{"text_input": "a"}')
    await house.until(lambda: peer.statuses)

    assert [each["text_output"] for each in events(peer)] == ["Once upon"]


@pytest.mark.parametrize(
    "end",
    [Piece(500, b"boom"), Piece(503, b"boom", error="InternalServerException")],
    ids=["a status that the handler chose", "an exception"],
)
async def test_an_error_after_the_first_piece_is_an_event(tmp_path: Path, end: Piece) -> None:
    house = await serving(tmp_path)
    peer, job = await begun(house, STREAM)
    job.stream(Piece(200, b"Once"))

    job.stream(end)
    house.clock.advance(10.0)

    assert events(peer)[1:] == [{"error": "boom"}]


async def test_a_handler_that_raises_is_500(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    house.engine.answer = lambda job: Reply(503, b"no", error="InternalServerException")

    assert (await ask(house, text_input="a"))[0] == 500
    assert (await ask(house, STREAM, text_input="a"))[0] == 500


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("systemsharedmemory/status", "shared memory"), ("cudasharedmemory/region/a/register", "shared memory of GPUs"),
        ("trace/setting", "Triton's trace settings"), ("models/m/trace/setting", "Triton's trace settings"),
        ("logging", "its log"),
    ],
)  # fmt: skip
async def test_tritons_other_extensions_are_refused_by_name(tmp_path: Path, path: str, named: str) -> None:
    house = await serving(tmp_path)

    for method in ("GET", "POST"):
        status, document = await house.tell(method, f"/v2/{path}")
        assert (status, document["type"]) == (501, "NotServedException")
        assert named in document["error"]
