"""gRPC's health checks report what `/ready` does."""

from pathlib import Path

import pytest

from tests.extensions.grpc.client import HEALTH, grpc_house
from tests.extensions.grpc.test_predictions import failure, until
from tsctl.daemon.extensions.grpc import health
from tsctl.daemon.extensions.grpc.protos.messages import message_class

pytestmark = pytest.mark.slow  # a real server and client

SERVING, NOT_SERVING, UNKNOWN = 1, 2, 3


async def test_a_watcher_sees_each_change_and_the_end(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        model = await made.house.serve("m")  # before the watch: while it is registered, it is seen without workers
        call = made.call("Watch", message_class("grpc.health.v1.HealthCheckRequest")(service="m"), HEALTH)
        seen = [(await made.settled(call.read())).status]
        model.scale(0, 0)
        seen.append((await made.settled(call.read())).status)
        model.scale(1, 1)
        seen.append((await made.settled(call.read())).status)
        made.health.closing.set()
        seen.append((await made.settled(call.read())).status)

        assert seen == [SERVING, NOT_SERVING, SERVING, NOT_SERVING]
        assert await made.settled(call.read()) is made.grpc.aio.EOF


async def test_a_watcher_of_an_unknown_service_waits_for_it(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        call = made.call("Watch", message_class("grpc.health.v1.HealthCheckRequest")(service="m"), HEALTH)

        assert (await made.settled(call.read())).status == UNKNOWN
        await made.house.serve("m")
        seen = UNKNOWN
        while seen != SERVING:
            seen = (await made.settled(call.read())).status


async def test_so_many_calls_watch_on_one_connection_and_a_place_is_free_when_one_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "WATCHERS_OF_ONE", 2)
    async with grpc_house(tmp_path) as made:
        calls = [made.call("Watch", None, HEALTH) for _ in range(2)]
        for call in calls:
            await made.settled(call.read())

        code, text = await failure(made, made.call("Watch", None, HEALTH).read())
        assert code == "RESOURCE_EXHAUSTED"
        assert text == "Too many calls of Health/Watch: the limit is 2 on one connection. Call Check instead."
        calls[0].cancel()
        await until(lambda: made.calls.running == 1)

        assert (await made.settled(made.call("Watch", None, HEALTH).read())).status
