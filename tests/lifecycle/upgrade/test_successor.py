"""The process that takes a daemon's place is started as the daemon was."""

import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tsctl.daemon.lifecycle.upgrade.successor import Launch, SuccessorGone, start


async def test_a_variable_that_a_library_has_set_for_itself_alone_is_not_inherited(tmp_path: Path) -> None:
    python, said = tmp_path / "python", tmp_path / "said"
    python.write_text(f"#!/bin/sh\nenv > {said}\n")
    python.chmod(0o755)
    ours, control = socket.socketpair()
    inheritance = cast(Any, SimpleNamespace(locks=(), control=control.fileno(), endpoints=()))
    os.putenv("TSCTL_TEST_OF_C", "1")  # as a library does; os.environ does not have it
    try:
        started = start(Launch((), str(tmp_path)), str(python), inheritance)
    finally:
        os.unsetenv("TSCTL_TEST_OF_C")
        ours.close()
        control.close()
    with pytest.raises(SuccessorGone):
        await started.hear()
    await started.end(at_once=True)

    assert "PATH=" in said.read_text()
    assert "TSCTL_TEST_OF_C" not in said.read_text()
