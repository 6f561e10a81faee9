"""What a daemon tells of models that are spread."""

import asyncio
import logging
from pathlib import Path

import pytest

from tests.api.house import House

SPREAD = "parallelType: tp\ntorchrun:\n  nproc-per-node: 2\n"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param("", ("", 0), id="one process"),
        pytest.param("parallelType: tp\n", ("", 0), id="no number of processes"),
        pytest.param(SPREAD, ("tp", 2), id="two processes"),
        pytest.param("parallelType: custom\nparallelLevel: 3\n", ("custom", 3), id="three GPUs, if there are any"),
    ],
)
def test_a_version_shows_how_it_is_spread(config: str, expected: tuple[str, int], tmp_path: Path) -> None:
    async def shown() -> tuple[str, int]:
        house = House(tmp_path)
        await house.serve("m", config=config)
        _, [document] = await house.tell("GET", "/models/m")
        return document["parallelType"], document["parallelLevel"]

    assert asyncio.run(shown()) == expected


def test_a_key_without_effect_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tsctl.daemon.models"):
        asyncio.run(House(tmp_path).serve("m", config=SPREAD + "  rdzv-backend: c10d\n"))

    assert "m: `torchrun.rdzv-backend` in model-config.yaml has no effect here" in caplog.text
