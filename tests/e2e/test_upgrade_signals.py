"""Signals, kills and stops of a daemon during and after an upgrade: which process ends."""

import http.client
import json
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import begin_upgrade
from tests.e2e.served import PATIENCE, TSCTL, Served, eventually, running
from tests.lab.chaos.upgrades import upgrade
from tests.lab.harness.daemon import marked


@pytest.fixture
def held(idle: Served) -> Iterator[tuple[int, http.client.HTTPConnection]]:
    """The pid of a daemon that has been replaced, and the idle connection that keeps it."""
    idle.environment["UPGRADES_MARK"] = str(idle.folder)
    idle.forks = False
    idle.start()
    connection = idle.connect()
    connection.request("GET", "/live")
    connection.getresponse().read()
    old = idle.pid
    upgrade(idle, grace=60.0)
    assert running(old)
    yield old, connection
    connection.close()


def test_a_daemon_that_is_killed_takes_the_one_that_loads_with_it_and_the_next_start_restores(fragile: Served) -> None:
    asking = begin_upgrade(fragile)

    os.kill(fragile.pid, signal.SIGKILL)

    asking.communicate(timeout=PATIENCE)
    assert asking.returncode == 1
    eventually(lambda: not marked(fragile), "nothing is left")
    (fragile.folder / "word").write_text("go")
    fragile.start()
    eventually(lambda: fragile.ask("/predictions/fragile", b"x").body == b"ok", "it is served again")


def test_a_signal_to_a_replaced_daemon_ends_only_what_is_left_of_it(
    idle: Served, held: tuple[int, http.client.HTTPConnection]
) -> None:
    old, _ = held

    os.kill(old, signal.SIGTERM)

    eventually(lambda: not running(old), "the old daemon ends")
    assert idle.ask("/live").status == 200


def test_a_replaced_daemon_answers_once_more_and_ends_when_nobody_is_connected(
    idle: Served, held: tuple[int, http.client.HTTPConnection]
) -> None:
    old, connection = held

    connection.request("GET", "/live")
    response = connection.getresponse()

    assert response.status == 200
    assert response.will_close
    response.read()
    eventually(lambda: not running(old), "the old daemon ends")


def run_in_foreground(idle: Served) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([TSCTL, "run"], env=idle.environment, cwd=idle.folder, stderr=subprocess.DEVNULL)
    eventually(lambda: idle.run("status").returncode == 0, "the daemon serves")
    return process


def test_whoever_ran_the_daemon_in_the_foreground_keeps_its_process(idle: Served) -> None:
    process = run_in_foreground(idle)
    first = json.loads(idle.tsctl("upgrade", "--grace", "0", "--json"))
    second = json.loads(idle.tsctl("upgrade", "--grace", "0", "--json"))
    eventually(lambda: not running(first["new"]["pid"]), "the one between has gone")
    assert first["old"]["pid"] == process.pid
    assert idle.pid == second["new"]["pid"]
    assert process.poll() is None

    process.terminate()

    assert process.wait(timeout=PATIENCE) == 0
    assert not running(second["new"]["pid"])
    assert not (idle.folder / "control.sock").exists()


def test_a_stand_in_tells_how_the_daemon_ended(idle: Served) -> None:
    process = run_in_foreground(idle)
    new = json.loads(idle.tsctl("upgrade", "--grace", "0", "--json"))["new"]["pid"]

    os.kill(new, signal.SIGKILL)

    assert process.wait(timeout=PATIENCE) == 128 + signal.SIGKILL


def test_a_supervised_process_that_still_answers_passes_a_signal_on(idle: Served) -> None:
    process = run_in_foreground(idle)
    idle.note_address()
    connection = idle.connect()
    connection.request("GET", "/live")
    connection.getresponse().read()
    new = upgrade(idle, grace=60.0)["new"]["pid"]

    process.terminate()

    assert process.wait(timeout=PATIENCE) == 0
    assert not running(new)
    connection.close()
