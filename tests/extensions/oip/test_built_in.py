"""Requests of the protocol to built-in handlers: one input, `data`, and the answer as one output of JSON text."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tsctl.daemon.core.job import Param, Reply
from tsctl.handlers.sdk.built_in import declaration_of

INFER = "/v2/models/m/infer"
IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(100)
LENGTH = "Inference-Header-Content-Length"


async def built_in(root: Path, handler: str = "image_classifier", config: str = "") -> House:
    house = House(root)
    model = await house.serve("m", config=config)
    model.learn(declaration_of(handler), ())
    return house


def written(data: Any = None, **more: Any) -> bytes:
    tensor = {"name": "data", "datatype": "BYTES", "shape": [1], **more}
    return json.dumps({"inputs": [tensor if data is None else tensor | {"data": data}]}).encode()


async def test_an_image_reaches_the_handler_as_from_any_other_route(tmp_path: Path) -> None:
    house = await built_in(tmp_path)
    house.engine.answer = lambda job: Reply(200, b'{"cat": 0.9}', headers=[("Content-Type", "application/json")])
    element = len(IMAGE).to_bytes(4, "little") + IMAGE
    head = written(parameters={"binary_data_size": len(element)})

    status, document = await house.tell("POST", INFER, head + element, f"{LENGTH}: {len(head)}")

    assert list(house.last_job.params) == [Param("data", "", IMAGE)]
    assert (status, document["outputs"]) == (
        200, [{"name": "output", "datatype": "BYTES", "shape": [1], "data": ['{"cat": 0.9}']}],
    )  # fmt: skip


@pytest.mark.parametrize("encode", [base64.b64encode, base64.encodebytes], ids=["one line", "lines"])
async def test_an_image_in_json_is_base64(tmp_path: Path, encode: Any) -> None:
    house = await built_in(tmp_path)
    house.engine.answer = lambda job: Reply(200, b"{}")

    assert (await house.ask("POST", INFER, written([encode(IMAGE).decode()]))).status == 200

    assert list(house.last_job.params) == [Param("data", "", IMAGE)]
