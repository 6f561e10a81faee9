"""All extensions in one daemon, in memory: what their installation may not do."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.house import House
from tsctl.daemon.http.router import Audience
from tsctl.daemon.server.extensions import EXTENSIONS

PROGRAM = """
import os, pathlib, sys
from tests.api import house

def installed(*arguments):
    before, services = os.listdir("/proc/self/task"), install(*arguments)
    print(len(before), len(os.listdir("/proc/self/task")), *(each.extension.name for each in services))
    return services

install, house.installed = house.installed, installed
folder = pathlib.Path(sys.argv[1])
(folder / "keys").touch(mode=0o600)
house.House(
    folder, grpc_address="127.0.0.1:0", keys_file=str(folder / "keys"), log_location=str(folder),
    trace_endpoint="http://127.0.0.1:4318",
)
"""


def test_none_starts_a_thread_when_it_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    pytest.importorskip("opentelemetry")
    done = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path], capture_output=True, text=True, check=True)

    before, after, *names = done.stdout.split()
    assert after == before
    assert names == [each.name for each in EXTENSIONS]


async def test_none_shows_operators_routes_to_others_nor_keeps_a_timer_when_it_is_closed(tmp_path: Path) -> None:
    (tmp_path / "keys").touch(mode=0o600)
    house = House(tmp_path, keys_file=str(tmp_path / "keys"))
    shown = {audience: {word for each in house.services for word in each.routes(audience)} for audience in Audience}
    assert [audience for audience, words in shown.items() if "tsctl" in words] == [Audience.OPERATORS]
    assert "models/*" not in shown[Audience.CLIENTS] | shown[Audience.SCRAPERS]

    for each in house.services:
        each.begin()
    house.clock.advance(60.0)
    for each in house.services:
        await each.settle(replaced=False)
    for each in reversed(house.services):
        each.close()

    assert not house.clock.step(), "a timer is left"
