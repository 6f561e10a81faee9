"""The gRPC server: its port, its end, and its import, which only a daemon that serves gRPC pays for."""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extensions.grpc.client import grpc_house, prediction
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.extensions.grpc import server
from tsctl.daemon.extensions.grpc.server import GrpcServer, load_grpc

pytestmark = pytest.mark.slow  # real sockets


def test_a_port_in_use_is_refused_though_grpc_would_share_it() -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(StartError, match=f"127.0.0.1:{port}`: the port is in use"):
            server.check_free("127.0.0.1", port)


async def test_a_successor_shares_the_port_of_the_daemon_that_it_replaces(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    async with grpc_house(tmp_path / "old") as old:
        second = GrpcServer(old.grpc, old.calls, 1000)

        assert second.bind([("127.0.0.1", old.port)], alone=False) == [old.port]
        await second.close(0.0)
        with pytest.raises(StartError, match="in use"):
            GrpcServer(old.grpc, old.calls, 1000).bind([("127.0.0.1", old.port)])


async def test_a_running_call_is_answered_within_the_grace_time(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        made.house.engine.batch_time = lambda _size: 5.0
        model = await made.house.serve("m")
        call = made.call("Predictions", prediction("m", data=b"1"))
        await made.house.until(lambda: model.running)
        closing = asyncio.ensure_future(made.server.close(20.0))
        made.house.clock.advance(5.0)

        assert (await made.settled(call)).prediction == b"1"
        await closing


async def test_other_calls_are_served_while_a_message_is_read(tmp_path: Path) -> None:
    async with grpc_house(tmp_path) as made:
        kind = type(prediction("m"))

        small = made.calls._parse(kind, prediction("m", data=b"1").SerializeToString())
        of_many_fields = made.calls._parse(kind, b"\x78\x01" * 5_000)
        large = made.calls._parse(kind, prediction("m", data=bytes(2**20)).SerializeToString())

        turns = [len(list(reading.__await__())) for reading in (small, of_many_fields, large)]
        assert turns == [0, 2, 1]  # grpc has copied the large one in the callback before


def test_a_missing_package_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc.aio", None)

    with pytest.raises(StartError) as caught:
        load_grpc()
    assert caught.value.hint == "install it with `pip install 'tsctl[grpc]'`"


@pytest.mark.parametrize("chosen", ["", "1"])
def test_grpc_is_imported_without_its_handlers_of_forks_and_workers_have_what_the_operator_chose(chosen: str) -> None:
    program = (
        "import ctypes, os, sys, tsctl.daemon.extensions.grpc.server as s; before = 'grpc' in sys.modules;"
        "s.load_grpc(); c = ctypes.CDLL(None).getenv; c.restype = ctypes.c_char_p;"
        "from grpc._cython import cygrpc;"
        "print(before, 'grpc' in sys.modules, cygrpc._GRPC_ENABLE_FORK_SUPPORT,"
        " c(b'GRPC_ENABLE_FORK_SUPPORT').decode(), os.environ.get('GRPC_ENABLE_FORK_SUPPORT', 'unset'))"
    )
    inherited = {name: value for name, value in os.environ.items() if name != "GRPC_ENABLE_FORK_SUPPORT"}
    environment = inherited | ({"GRPC_ENABLE_FORK_SUPPORT": chosen} if chosen else {})
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "True", "False", "0", chosen or "unset"]
