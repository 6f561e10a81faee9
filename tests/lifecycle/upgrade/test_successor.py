"""The process that takes a daemon's place is started as the daemon was."""

import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tsctl.daemon.lifecycle.upgrade.successor import Launch, NewDaemon, SuccessorGone, start


def begun(folder: Path, script: str) -> NewDaemon:
    """Return a new daemon that is a script."""
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    ours, control = socket.socketpair()
    inheritance = cast(Any, SimpleNamespace(locks=(), control=control.fileno(), endpoints=()))
    try:
        return start(Launch((), str(folder)), str(python), inheritance)
    finally:
        ours.close()
        control.close()


async def test_a_variable_that_a_library_has_set_for_itself_alone_is_not_inherited(tmp_path: Path) -> None:
    said = tmp_path / "said"
    os.putenv("TSCTL_TEST_OF_C", "1")  # as a library does; os.environ does not have it
    try:
        started = begun(tmp_path, f"env > {said}")
    finally:
        os.unsetenv("TSCTL_TEST_OF_C")
    with pytest.raises(SuccessorGone):
        await started.hear()
    await started.end(at_once=True)

    assert "PATH=" in said.read_text()
    assert "TSCTL_TEST_OF_C" not in said.read_text()


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (40, "signal 40")])
async def test_a_signal_that_ends_it_is_told_by_its_name_if_it_has_one(number: int, name: str, tmp_path: Path) -> None:
    started = begun(tmp_path, f"kill -{number} $$")

    with pytest.raises(SuccessorGone, match=f"the new daemon was killed by {name} before it was ready"):
        await started.hear()
    await started.end(at_once=True)


async def test_one_that_says_nothing_in_its_time_is_not_waited_for(tmp_path: Path) -> None:
    started = begun(tmp_path, "exec sleep 60")

    with pytest.raises(TimeoutError):
        await started.hear(0.0)
    await started.end(at_once=True)
