"""Triton's `generate`: what conversations/generate.txt tells of short texts is so of long ones."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.api.house import House
from tsctl.daemon.core.job import Param
from tsctl.daemon.extensions.oip import generate
from tsctl.daemon.models.version import ModelVersion
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


async def test_a_long_text_is_a_declared_input(house: House) -> None:
    await house.serve("m", config="inputs: [{name: a, datatype: BYTES, shape: [1]}]")

    await house.ask("POST", "/v2/models/m/generate", json.dumps({"text_input": "a" * 40_000}).encode())

    (job,) = house.engine.workers[0].batches[0].jobs
    assert [bytes(each.value)[4:] for each in job.params] == [b"a" * 40_000]


@pytest.mark.parametrize("length", [1, 20_000])
async def test_a_refusal_is_counted_once(house: House, length: int) -> None:
    house.engine.declared = Declared([Input("picture", "image")], batches=False)
    model = await house.serve("m")

    answer = await house.ask("POST", "/v2/models/m/generate", json.dumps({"text_input": "ä" * length}).encode())

    assert (answer.status, model.metrics.refusals.total()) == (501, 1)


async def test_the_inputs_are_looked_up_once_for_a_short_text(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def look(model: ModelVersion) -> Mapping[str, str]:
        looked.append(model.name)
        return kinds_of(model)

    kinds_of = generate._kinds_of
    monkeypatch.setattr(generate, "_kinds_of", look)
    house.engine.declared = Declared([Input("prompt", "text")], batches=False)
    await house.serve("m")

    assert (await house.ask("POST", "/v2/models/m/generate", b'{"text_input": "a"}')).status == 200
    assert looked == ["m"]


async def test_nesting_without_end_is_refused(house: House) -> None:
    house.engine.declared = Declared([Input("prompt", "text")], batches=False)
    await house.serve("m")

    assert (await house.ask("POST", "/v2/models/m/generate", b"[" * 40_000)).status == 400
