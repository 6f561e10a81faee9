"""Signals, kills and stops of a daemon during and after an upgrade: which process ends."""

import contextlib
import json
import os
import signal
import subprocess

import pytest

from tests.e2e.served import PATIENCE, TSCTL, Answer, Served, eventually, running
from tests.lab.chaos.upgrades import upgrade
from tests.lab.harness.daemon import marked


def test_a_daemon_that_is_killed_takes_the_one_that_loads_with_it_and_the_next_start_restores(fragile: Served) -> None:
    word = fragile.folder / "word"
    word.unlink()  # the new daemon waits while it loads
    with subprocess.Popen([TSCTL, "upgrade"], env=fragile.environment, stderr=subprocess.PIPE, text=True) as asking:
        assert asking.stderr is not None
        while "loading" not in (line := asking.stderr.readline()):
            assert line, "the upgrade ended before it loaded"

        fragile.kill()

        asking.communicate(timeout=PATIENCE)
    assert asking.returncode == 1
    eventually(lambda: not marked(fragile), "nothing is left")
    word.write_text("go")
    fragile.start()
    eventually(lambda: fragile.ask("/predictions/fragile", b"x").body == b"ok", "it is served again")


@pytest.mark.parametrize("signalled", [True, False], ids=["at a signal", "when nobody is connected"])
def test_a_replaced_daemon_answers_once_more_and_ends(idle: Served, signalled: bool) -> None:
    idle.environment["UPGRADES_MARK"] = str(idle.folder)
    idle.forks = False
    idle.start()
    with contextlib.closing(idle.connect()) as connection:
        connection.request("GET", "/live")
        assert Answer.to(connection).status == 200
        old = idle.pid
        upgrade(idle, grace=60.0)
        assert running(old)

        if signalled:
            os.kill(old, signal.SIGTERM)
        else:
            connection.request("GET", "/live")
            assert (Answer.to(connection).status, connection.sock) == (200, None), "and closes the connection"

        eventually(lambda: not running(old), "the old daemon ends")
    assert idle.ask("/live").status == 200


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
