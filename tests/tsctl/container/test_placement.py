"""Addresses and models in a container: whatever nobody named follows the host, and management stays inside."""

from pathlib import Path

import pytest

from tests.tsctl.container.placed import STATE
from tsctl.container.host import Host
from tsctl.container.placement import place
from tsctl.daemon.config.properties import read_config_file


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://0.0.0.0", "https://127.0.0.1:8444"),
        ("https://[::]:9443", "https://127.0.0.1:9443"),
        ("http://0.0.0.0", "http://127.0.0.1:8081"),
        ("0.0.0.0:9000", "127.0.0.1:9000"),
    ],
)
def test_only_the_host_of_management_changes(tmp_path: Path, address: str, expected: str) -> None:
    file = tmp_path / "config.properties"
    file.write_text(f"management_address={address}\ndisable_token_authorization=true\n")
    placement = place({}, STATE, read_config_file(file, STATE), Host.PLAIN, grpc=True)

    assert placement.values["management_address"] == expected


def test_state_goes_elsewhere_where_home_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/proc/self")
    assert place({}, {}, None, Host.PLAIN, grpc=True).values["state_dir"].startswith("/tmp/tsctl-state-")

    monkeypatch.setenv("HOME", str(tmp_path))
    assert "state_dir" not in place({}, {}, None, Host.PLAIN, grpc=True).values
