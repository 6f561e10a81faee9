"""What a daemon tells of models that are spread."""

import asyncio
import logging
from pathlib import Path

import pytest

from tests.api.house import House

SPREAD = "parallelType: tp\ntorchrun:\n  nproc-per-node: 2\n"


def test_a_key_without_effect_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tsctl.daemon.models"):
        asyncio.run(House(tmp_path).serve("m", config=SPREAD + "  rdzv-backend: c10d\n"))

    assert "m: `torchrun.rdzv-backend` in model-config.yaml has no effect here" in caplog.text
