"""Replacing a running daemon: nobody notices, and if it fails nothing has happened."""

from argparse import Namespace
from pathlib import Path

import pytest

from tests.e2e.served import Served, eventually
from tests.lab.chaos.upgrades import storm
from tests.lab.harness.ledger import Ledger


def test_clients_that_never_pause_notice_nothing_of_upgrades(tmp_path: Path) -> None:
    ledger = Ledger()

    storm(Served(tmp_path), Namespace(count=3, grace=1.0, seed=1), ledger)

    assert (ledger.unanswered, ledger.broken) == ([], [])
    assert ledger.done["answers that ended a kept connection"] >= 3, "clients were connected to the daemons that went"
    assert (ledger.done["upgrades"], ledger.done["upgrades whose new daemon was killed"]) == (3, 1)


@pytest.mark.thin
def test_the_new_daemon_serves_what_the_old_one_was_told(idle: Served) -> None:
    idle.start("--no-restore", "--models", idle.pack("echo"))
    eventually(lambda: idle.ask("/ready").status == 200, "what the list names is ready")
    idle.register("obey", "--workers", "3")
    idle.register("obey", "--workers", "1", version="2.0")
    idle.tsctl("default", "obey/2.0")
    idle.command("PUT", "/models/obey/1.0?min_worker=1&max_worker=4&synchronous=true")  # any of the three is enough
    idle.tsctl("set", "obey/1.0", "--batch-size", "7")
    before = idle.status
    inode = (idle.folder / "control.sock").stat().st_ino

    said = idle.tsctl("upgrade")

    after = idle.status
    assert f"pid {before['pid']} → tsctl" in said
    assert after["pid"] == idle.pid != before["pid"]
    assert [model | {"arrivalsPerSecond": 0} for model in after["models"]] == [
        model | {"arrivalsPerSecond": 0} for model in before["models"]
    ]
    assert {model["name"] + model["version"]: model["ready"] for model in after["models"]}["obey1.0"] == 3
    assert (idle.folder / "control.sock").stat().st_ino == inode
    assert idle.ask("/ready").status == 200


@pytest.mark.leaves_traceback  # the model's own, in the words of the daemon that could not take over
def test_a_model_that_no_longer_loads_leaves_the_old_daemon_as_it_was(fragile: Served) -> None:
    pid = fragile.pid
    (fragile.folder / "word").write_text("fail")

    failed = fragile.run("upgrade")

    assert failed.returncode == 1
    assert "error: Upgrade failed; the running daemon stays: Failed to start workers for model fragile" in failed.stderr
    assert "in check" in failed.stderr
    assert "FileNotFoundError: the vocabulary is missing" in failed.stderr
    assert fragile.pid == pid
    assert fragile.ask("/predictions/fragile", b"x").body == b"ok"
    fragile.tsctl("set", "fragile", "--batch-size", "2")


def test_an_interpreter_that_does_not_work_is_told(served: Served) -> None:
    missing, fails = (served.command("POST", f"/tsctl/upgrade?python={each}") for each in ("/nowhere", "/bin/false"))

    assert (missing.status, fails.status) == (500, 500)
    assert "cannot start `/nowhere`: No such file" in missing.json["message"]
    assert "the new daemon ended with exit code 1 before it was ready" in fails.json["message"]
    served.register("echo")
