"""Inference requests in tensors: checked before the queue, handed to the worker, and answered as the client asks."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.api.inference.test_streaming import Flow
from tsctl.daemon.core.job import Piece, Reply
from tsctl.daemon.extensions.tensors.answers import parse_answer
from tsctl.handlers.tensor_heads import ElementHeads, TensorHead
from tsctl.handlers.wire import Declared, Input

DECLARED = """
inputs: [{name: a, datatype: INT32, shape: [-1]}, {name: b, datatype: BYTES, shape: [1], optional: true}]
outputs: [{name: o, datatype: INT32, shape: [-1]}]
"""
INFER = "/v2/models/m/infer"
A = {"name": "a", "datatype": "INT32", "shape": [2], "data": [1, -1]}
PACKED = struct.pack("<2i", 1, -1)


def written(*inputs: Any, **more: Any) -> bytes:
    return json.dumps({"inputs": inputs, **more}).encode()


async def declared(root: Path, config: str = DECLARED) -> House:
    house = House(root)
    await house.serve("m", config=config)
    return house


async def test_a_worker_that_answers_in_pieces_is_told_to_stop(tmp_path: Path) -> None:
    house, flow = await declared(tmp_path, config=""), Flow()
    house.engine.batch_time = lambda size: 10.0
    house.send("POST", INFER, written(A))

    house.last_job.stream(Piece(200, b"1", flow=flow))

    assert flow.told == ["refused"]
    assert house.last_job.params[0].content_type == "application/json", "Triton's clients send no type"


async def test_a_model_that_declares_nothing_gets_binary_tensors_as_json_and_answers_with_bytes(tmp_path: Path) -> None:
    house = await declared(tmp_path, config="")
    output = {"name": "o", "datatype": "INT32", "shape": [1], "data": [5]}
    house.engine.answer = lambda job: Reply(200, json.dumps({"id": "7", "outputs": [output]}).encode())
    head = written(
        {"name": "a", "datatype": "INT32", "shape": [2], "parameters": {"binary_data_size": 8}},
        parameters={"binary_data_output": True},
    )

    answer = await house.ask("POST", INFER, head + PACKED, f"Inference-Header-Content-Length: {len(head)}")

    job = house.last_job
    described = written({"name": "a", "datatype": "INT32", "shape": [2]})
    assert [(each.name, each.content_type) for each in job.params] == [("body", "application/json")] * 2
    assert (json.loads(bytes(job.params[0].value)), job.params[1].value) == (json.loads(described), PACKED)
    assert job.infer == ElementHeads([None, TensorHead("a", "INT32", [2])], document=True, binary=True)
    read = parse_answer(answer.body, int(answer.headers["inference-header-content-length"]))
    assert (read.id, read.outputs[0].data) == ("7", struct.pack("<i", 5))


@pytest.mark.parametrize(
    ("target", "parameters", "sent"),
    [
        (
            INFER,
            {},
            Reply(200, b'{"outputs": [{"name": "o", "more": 1}]}', headers=[("Content-Type", "application/json")]),
        ),
        (
            "/v2/models/m/versions/1.0/infer",
            {"binary_data_output": True},
            Reply(200, b"{}1234", headers=[("Inference-Header-Content-Length", "2")]),
        ),
    ],
    ids=["JSON", "bytes"],
)
async def test_an_answer_that_is_as_asked_is_not_read(
    tmp_path: Path, target: str, parameters: Any, sent: Reply
) -> None:
    house = await declared(tmp_path, config="")
    house.engine.answer = lambda job: sent
    tensor = {"name": "a", "datatype": "INT32", "shape": [2], "parameters": {"binary_data_size": 8}}
    head = written(tensor, parameters=parameters)

    answer = await house.ask("POST", target, head + PACKED, f"Inference-Header-Content-Length: {len(head)}")

    assert answer.body == sent.body
    assert house.last_job.unnamed is (target == INFER)


TYPED = Declared([Input("text", "text"), Input("scores", "array")], batches=False)


async def typed(root: Path, config: str = "") -> House:
    house = House(root)
    model = await house.serve("m", config=config)
    model.learn(TYPED, ())
    return house


async def test_an_image_as_answer_is_sent_as_bytes_only(tmp_path: Path) -> None:
    house = await typed(tmp_path)
    house.engine.answer = lambda job: Reply(200, b"\xff\xd8", headers=[("Content-Type", "image/jpeg")])
    text = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["x"]}

    refused = await house.tell("POST", INFER, written(text))
    answer = await house.ask("POST", INFER, written(text, parameters={"binary_data_output": True}))

    assert refused[0] == 500 and "use binary data" in refused[1]["error"]
    assert answer.body.endswith(b"\x02\0\0\0\xff\xd8")
    assert answer.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (written(A | {"data": [1] * 10_000, "shape": [10_000]}, output=[]), "output"),
        (written(A | {"data": [1] * 10_000, "shape": [10_000], "dtype": 1}), "dtype"),
    ],
    ids=["of the request", "of an input"],
)
async def test_a_member_that_the_protocol_does_not_have_is_refused_in_a_large_request_too(
    tmp_path: Path, body: bytes, named: str
) -> None:
    house = House(tmp_path, max_body=100_000)
    await house.serve("m", config=DECLARED)

    status, document = await house.tell("POST", INFER, body)

    assert (status, f"unknown field `{named}`" in document["error"]) == (400, True)
