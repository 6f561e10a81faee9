"""TorchServe's keys for gRPC in a config.properties."""

import importlib.util
from pathlib import Path

import pytest

from tsctl.daemon.config.config import Config, resolve
from tsctl.daemon.config.tokens import read_tokens
from tsctl.daemon.core.errors import StartError

SECRET = {"TSCTL_TOKEN": "secret"}


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())


def configured(root: Path, *lines: str, environment: dict[str, str] | None = None, **flags: str) -> Config:
    file = root / "config.properties"
    file.write_text("\n".join(lines))
    said = {"ts_config": str(file), "state_dir": str(root), "socket": str(root / "socket"), **flags}
    return resolve(said, environment or {})


@pytest.mark.parametrize(
    ("lines", "flags", "addresses"),
    [
        (["grpc_inference_address=0.0.0.0", "grpc_inference_port=9000"], {}, ("0.0.0.0:9000",)),
        (["grpc_inference_port=9000"], {}, ("127.0.0.1:9000",)),
        (["grpc_inference_address=0.0.0.0"], {}, ("0.0.0.0:7070",)),
        (["grpc_inference_port=http://127.0.0.2:7000"], {}, ("127.0.0.2:7000",)),
        (["grpc_inference_address=http://0.0.0.0"], {}, ("0.0.0.0:7070",)),
        (["grpc_inference_port=9000"], {"grpc_address": "127.0.0.1:1234"}, ("127.0.0.1:1234",)),
        (["default_workers_per_model=1"], {}, None),
    ],
)
def test_the_keys_of_inference_open_inference_and_a_flag_wins(
    tmp_path: Path, lines: list[str], flags: dict[str, str], addresses: tuple[str, ...] | None
) -> None:
    config = configured(tmp_path, *lines, environment=SECRET, **flags)

    assert (config.grpc_address, config.grpc_management_address, config.notes) == (addresses, None, ())
    whence = "flag" if flags else "file" if addresses else "default"
    assert (config.origins["grpc_address"], config.origins["grpc_management_address"]) == (whence, "default")


def test_management_is_opened_with_a_token_only(tmp_path: Path) -> None:
    without = configured(tmp_path, "grpc_management_port=9001")
    config = configured(tmp_path, "grpc_management_port=9001", environment=SECRET)

    assert without.grpc_management_address is None
    assert without.notes == (
        "note: grpc_management_port has no effect: management over gRPC needs a token, because its clients can run code"
        " here: add `--token-file FILE`",
    )
    assert config.grpc_management_address == ("127.0.0.1:9001",)


def test_a_flag_opens_it_with_a_token_only(tmp_path: Path) -> None:
    config = configured(tmp_path, grpc_management_address="127.0.0.1:9001")

    with pytest.raises(StartError, match=r"the gRPC management address `127\.0\.0\.1:9001` needs a token"):
        read_tokens(config, {})


def test_where_grpc_is_not_installed_the_start_goes_on_and_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    config = configured(tmp_path, "grpc_inference_address=0.0.0.0", "grpc_inference_port=9000")

    assert config.grpc_address is None
    assert config.notes == (
        "note: grpc_inference_address, grpc_inference_port have no effect: gRPC needs `pip install 'tsctl[grpc]'`",
    )


@pytest.mark.parametrize("key", ["grpc_inference_max_connection_age_ms", "grpc_management_max_connection_age_grace_ms"])
def test_ages_of_connections_have_no_effect(tmp_path: Path, key: str) -> None:
    config = configured(tmp_path, f"{key}=1000")

    assert config.notes == (f"note: {tmp_path / 'config.properties'} has keys that have no effect here: {key}",)


def test_a_wish_for_tls_that_would_be_lost_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"config.properties: enable_grpc_ssl: TLS comes from `certificate_file`"):
        configured(tmp_path, "enable_grpc_ssl=true")
    assert "enable_grpc_ssl" in configured(tmp_path, "enable_grpc_ssl=false").notes[0]
