"""The assembly of a daemon: what is left of it when an extension refuses to start, and what it notes."""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.kit.build import make_config
from tsctl.daemon.config.tokens import Tokens
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.events.events import Events
from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.lifecycle.upgrade.successor import Launch
from tsctl.daemon.server import models
from tsctl.daemon.server.assembly import assemble
from tsctl.daemon.server.observation import Observation
from tsctl.daemon.workers.local_engine import LocalEngine


class _Engine(LocalEngine):
    ended: list[str]

    def close(self) -> None:
        self.ended.append("closed")
        super().close()

    def kill_leftovers(self) -> None:
        self.ended.append("killed")


class _Refusing(Extension):
    name = "refusing"

    def install(self, kernel: Kernel) -> Service:
        raise StartError(f"{kernel.config.state_dir} is not to its liking")


def test_an_extension_that_refuses_to_start_leaves_no_process_of_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []

    def made(*arguments: Any, alone: bool, **named: Any) -> _Engine:
        assert alone
        engine = _Engine(*arguments, **named)  # this process has other children
        engine.ended = ended
        return engine

    monkeypatch.setattr(models, "LocalEngine", made)
    nothing = cast(Any, SimpleNamespace())
    launch = Launch([], os.getcwd())
    config = make_config(tmp_path, template="false")

    async def refuse() -> None:
        with pytest.raises(StartError, match="is not to its liking"):
            assemble(config, launch, nothing, nothing, [_Refusing()], nothing, Tokens(), None, foreground=False)

    asyncio.run(refuse())

    assert ended == ["closed", "killed"]


@pytest.mark.parametrize(
    ("selection", "section", "noted"),
    [
        pytest.param(None, "ts_metrics", True, id="no extension selects"),
        pytest.param(object(), "ts_metrics", False, id="an extension selects"),
        pytest.param(None, "model_metrics", False, id="the file selects none of the server's"),
    ],
)
def test_a_selection_of_metrics_that_no_extension_obeys_is_noted(
    selection: object, section: str, noted: bool, tmp_path: Path
) -> None:
    file = tmp_path / "metrics.yaml"
    file.write_text(f"{section}: {{gauge: [{{name: QueueTime, unit: ms, dimensions: []}}]}}")

    clock = FakeClock()
    observation = Observation(Events(), clock, clock.soon)
    observation.selection = selection

    notes = observation.notes_on(make_config(tmp_path, metrics_config=str(file)))

    text = f"note: `ts_metrics` of {file} has no effect: this daemon does not choose metrics"
    assert notes == ((text,) if noted else ())
