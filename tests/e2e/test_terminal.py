"""The output for people: the command line on a terminal, and in a pipe."""

import re
import signal
from collections.abc import Iterator
from functools import partial

import pexpect
import pytest

from tests.e2e.served import PATIENCE, TSCTL, Served

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def on_terminal(served: Served, *arguments: str) -> pexpect.spawn:
    environment = served.environment | {"TERM": "xterm"}
    return pexpect.spawn(
        str(TSCTL),
        list(arguments),
        env=environment,
        cwd=served.folder,
        timeout=PATIENCE,
        encoding="utf-8",
        dimensions=(40, 120),
        # A test run in the background ignores Ctrl-C, and its children would, too.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def screen_of(process: pexpect.spawn) -> str:
    process.expect(pexpect.EOF)
    process.close()
    text = process.before
    assert isinstance(text, str)
    return ESCAPE.sub("", text).replace("\r\n", "\n")


@pytest.fixture
def loading(idle: Served) -> Iterator[Served]:
    """A daemon whose model `slow_load` loads until the file `go` appears."""
    idle.environment["TEST_GO"] = str(idle.folder / "go")
    idle.start()
    idle.pack("slow_load")
    yield idle
    (idle.folder / "go").touch()


@pytest.mark.thin
def test_register_shows_what_it_waits_for(loading: Served) -> None:
    process = on_terminal(loading, "register", "slow_load.mar")
    process.expect("loading slow_load.mar, 0 of 1 workers ready")

    (loading.folder / "go").touch()

    assert 'Model "slow_load" Version: 1.0 registered with 1 initial workers' in screen_of(process)
    assert process.exitstatus == 0
