"""The address of a Ray cluster: an option of the daemon."""

from pathlib import Path

import pytest

from tsctl.daemon.config.config import resolve
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.extensions.ray import parse_cluster


@pytest.mark.parametrize("text", ["auto", "10.0.0.5:6379", "head:6379", "[fd00::1]:6379"])
def test_the_address_of_a_head_is_taken(text: str) -> None:
    assert parse_cluster(text) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("ray://head:10001", "must be a node of the cluster", id="an address for clients"),
        pytest.param("head", "neither HOST:PORT of a Ray head nor `auto`", id="no port"),
        pytest.param("http://head:6379", "neither HOST:PORT", id="a URL"),
    ],
)
def test_any_other_text_is_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_cluster(text)


def test_the_setting_is_a_flag_or_a_variable_of_the_daemon(tmp_path: Path) -> None:
    base = {"state_dir": str(tmp_path), "socket": str(tmp_path / "s")}

    assert resolve(base, {}).ray_address is None
    assert resolve(base, {"TSCTL_RAY_ADDRESS": "head:6379"}).ray_address == "head:6379"
    with pytest.raises(StartError, match="nor `auto`"):
        resolve(base | {"ray_address": "head"}, {})
