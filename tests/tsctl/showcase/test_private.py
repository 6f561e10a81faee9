"""The daemon of the demo, and what becomes of its folder."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tsctl.errors import CliError
from tsctl.showcase import private
from tsctl.showcase.private import private_daemon


class Recorded:
    """A daemon that was to be started; none is."""

    folder, state_dir = Path("/f"), Path("/f/state")
    arguments: Sequence[str]
    environment: Mapping[str, str]
    kept: bool

    def start(self, arguments: Sequence[str], *, environment: Mapping[str, str]) -> "Recorded":
        self.arguments, self.environment = arguments, environment
        return self

    def stop(self, *, keep: bool) -> None:
        self.kept = keep


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    daemon = Recorded()
    monkeypatch.setattr(private, "PrivateDaemon", daemon.start)
    return daemon


def test_the_daemon_listens_on_no_port_and_leaves_nothing(started: Recorded) -> None:
    with private_daemon() as daemon:
        assert daemon.folder == Path("/f")

    assert "--inference-address=none" in started.arguments
    assert not started.kept


def test_a_failure_keeps_the_logs_and_names_them(started: Recorded) -> None:
    with pytest.raises(CliError) as raised, private_daemon():
        raise CliError("3 of 100 requests failed")

    assert (raised.value.hint, started.kept) == ("the logs are in `/f/state/logs`", True)


def test_a_failure_with_a_remedy_leaves_nothing(started: Recorded) -> None:
    with pytest.raises(CliError, match="no room"), private_daemon():
        raise CliError("no room", "make room")

    assert not started.kept


def test_the_settings_of_the_users_own_daemon_do_not_count(started: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TSCTL_MANAGEMENT_TOKEN_FILE", "TS_CONFIG_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    with private_daemon():
        pass

    assert started.environment.items() <= os.environ.items()
    assert not any(name.startswith(("TSCTL_", "TS_CONFIG_FILE")) for name in started.environment)
