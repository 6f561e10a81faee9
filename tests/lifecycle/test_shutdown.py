"""How a daemon ends: what is true while it does."""

from pathlib import Path
from typing import cast

import pytest

from tests.kit.daemon import StubDaemon
from tsctl.daemon.lifecycle.shutdown import Shutdown
from tsctl.daemon.lifecycle.sockets import SupervisedListener
from tsctl.daemon.models.reporting.model_state import ModelState


class Server:
    """Notes the states of the models when it is closed."""

    def __init__(self, bench: StubDaemon) -> None:
        self._bench = bench
        self.states: list[ModelState] = []

    def close(self) -> None:
        self.states = [model.state for model in self._bench.registry]


@pytest.mark.parametrize(
    ("successor", "state"), [(None, ModelState.STOPPING), (7, ModelState.READY)], ids=["stopped", "replaced"]
)
async def test_when_connections_are_refused_no_model_of_a_daemon_that_is_stopped_is_ready(
    tmp_path: Path, successor: int | None, state: ModelState, bench: StubDaemon
) -> None:
    for name in ("a", "b"):
        await bench.register(bench.mar(name))
    shutdown = Shutdown(600.0, tmp_path / "pid", supervised=False)
    shutdown.successor = successor
    server = Server(bench)

    shutdown.close(bench.registrar, [cast(SupervisedListener, server)])

    assert server.states == [state, state]
    await bench.registrar.stop(grace=0.0)
