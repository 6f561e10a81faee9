"""Fixtures: a daemon to talk to, a socket without one, and a way to run a command."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from click.testing import CliRunner, Result

from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.cli import main


class Invoke(Protocol):
    """Run `tsctl` with these arguments."""

    def __call__(self, *arguments: str | Path, stdin: bytes = b"") -> Result: ...


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's own daemon and settings out of it."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("TSCTL_SOCKET", "TSCTL_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Show times in UTC."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def invoke() -> Invoke:
    def run(*arguments: str | Path, stdin: bytes = b"") -> Result:
        return CliRunner().invoke(main, [str(each) for each in arguments], input=stdin, prog_name="tsctl")

    return run


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[FakeDaemon]:
    """A daemon where the command line looks for one."""
    directory = tmp_path / "run" / "tsctl"
    directory.mkdir(parents=True)
    fake = FakeDaemon(directory / "control.sock")
    yield fake
    fake.close()
