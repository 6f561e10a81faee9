"""No client can move a version's judgement by how it ends its calls: tests/api/test_endings.py, over gRPC."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from tests.api.house import House
from tests.api.test_endings import Clients, check_end, every_end
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Param
from tsctl.daemon.extensions.grpc.heads import read_head
from tsctl.daemon.extensions.grpc.prediction import CallFailed, replies_at_end
from tsctl.daemon.extensions.grpc.waiting.arrivals import Arrivals
from tsctl.daemon.models.version import ModelVersion


class Calls(Clients):
    """Clients of one version, without a connection."""

    def __init__(self, house: House, model: ModelVersion) -> None:
        super().__init__(house, model)
        self._calls: list[asyncio.Task[None]] = []

    async def ask(self, *headers: str) -> None:
        metadata = tuple((name, value) for name, _, value in (each.partition(": ") for each in headers))
        self._calls.append(asyncio.create_task(self._call(metadata)))
        await asyncio.sleep(0)
        self.house.clock.settle()

    async def _call(self, metadata: tuple[tuple[str, str], ...]) -> None:
        clock = self.house.clock
        try:
            head = read_head("/p.S/Predictions", metadata, None, clock.now(), client=self.client)
            param = Param("data", "", b"xx")
            await replies_at_end(Arrivals(clock), self.model, head, [param], unnamed=True)
        except (CallFailed, DaemonError):
            pass

    async def leave(self) -> None:
        self._calls[-1].cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.house.clock.settle()


@every_end
async def test_an_end_that_a_client_chose_counts_neither_way(
    tmp_path: Path, chosen: Callable[[Clients], "asyncio.Future[int]"]
) -> None:
    await check_end(tmp_path, Calls, chosen)
