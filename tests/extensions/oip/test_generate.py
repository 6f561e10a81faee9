"""Triton's `generate`: what conversations/generate.txt tells of short texts is so of long ones."""

import json
from pathlib import Path

import pytest

from tests.api.house import House
from tsctl.daemon.core.job import Param
from tsctl.handlers.wire import Declared, Input


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path, max_body=200_000)


async def test_a_long_text_is_the_models_input(house: House) -> None:
    house.engine.declared = Declared([Input("prompt", "text")], batches=False)
    await house.serve("m")

    answer = await house.ask("POST", "/v2/models/m/generate", json.dumps({"text_input": "ä" * 20_000}).encode())

    assert json.loads(answer.body)["text_output"] == "ä" * 20_000
    (job,) = house.engine.workers[0].batches[0].jobs
    assert (list(job.params), job.infer) == ([Param("prompt", "", ("ä" * 20_000).encode())], None)


async def test_nesting_without_end_is_refused(house: House) -> None:
    house.engine.declared = Declared([Input("prompt", "text")], batches=False)
    await house.serve("m")

    assert (await house.ask("POST", "/v2/models/m/generate", b"[" * 40_000)).status == 400
