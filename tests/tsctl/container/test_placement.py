"""Addresses and models in a container: whatever nobody named follows the host, and management stays inside."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.tsctl.container.kserve_file import KSERVE_FILE
from tsctl.container.host import Host
from tsctl.container.placement import PlacedSettings, place
from tsctl.daemon.config.config import resolve
from tsctl.daemon.config.endpoints import choose_endpoints
from tsctl.daemon.config.properties import read_config_file
from tsctl.daemon.config.tokens import read_tokens
from tsctl.options import daemon_arguments

STATE = {"TSCTL_STATE_DIR": "/nowhere", "TSCTL_SOCKET": "/nowhere/control.sock"}
KSERVE = STATE | {"PROTOCOL_VERSION": "v1"}
BOTH_AT_8080 = "inference_address=http://0.0.0.0:8080\nmanagement_address=http://0.0.0.0:8080\n"
DOCKER_FILE = (
    "inference_address=http://0.0.0.0:8080\nmanagement_address=http://0.0.0.0:8081\n"
    "metrics_address=http://0.0.0.0:8082\ngrpc_inference_address=0.0.0.0\ngrpc_management_address=0.0.0.0\n"
)


class Placed:
    """What a container with these words, variables and file gets."""

    def __init__(
        self,
        folder: Path,
        text: str | None = None,
        environment: Mapping[str, str] = STATE,
        host: Host = Host.PLAIN,
        **given: Any,
    ) -> None:
        file = None
        if text is not None:
            given["ts_config"] = folder / "config.properties"
            given["ts_config"].write_text(text)
            file = read_config_file(given["ts_config"], environment)
        self.placement: PlacedSettings = place(given, environment, file, host, grpc=True)
        self.values, self.notes = self.placement.values, "\n".join(self.placement.notes)
        arguments = daemon_arguments(None, given | self.values)
        flags = {
            flag.removeprefix("--").replace("-", "_"): value for flag, _, value in (a.partition("=") for a in arguments)
        }
        self.config = resolve(flags, environment)
        read_tokens(self.config, environment)  # raises where the daemon would not start
        self.addresses = {
            f"{endpoint.host}:{endpoint.port}": sorted(endpoint.roles) for endpoint in choose_endpoints(self.config)
        }


def test_predictions_are_served_on_all_addresses_where_no_file_says_otherwise(tmp_path: Path) -> None:
    assert Placed(tmp_path).addresses == {"0.0.0.0:8080": ["inference"]}


def test_a_file_of_ones_own_decides_about_predictions(tmp_path: Path) -> None:
    assert Placed(tmp_path, "inference_address=http://0.0.0.0:9000").addresses == {"0.0.0.0:9000": ["inference"]}


@pytest.mark.parametrize("token_free", [None, True])
def test_the_file_of_torchserves_image_keeps_management_inside(tmp_path: Path, token_free: bool | None) -> None:
    placed = Placed(tmp_path, DOCKER_FILE, management_without_token=token_free)

    management = {"127.0.0.1:8081": ["management"]} if token_free else {}
    assert placed.addresses == {"0.0.0.0:8080": ["inference"], "0.0.0.0:8082": ["metrics"]} | management
    assert "management" in placed.notes or "`http://127.0.0.1:8081` in this container" in placed.notes


@pytest.mark.parametrize("host", [Host.PLAIN, Host.KSERVE])
def test_two_roles_never_share_an_address_by_accident(tmp_path: Path, host: Host) -> None:
    environment = KSERVE if host is Host.KSERVE else STATE
    placed = Placed(tmp_path, BOTH_AT_8080, environment, host, management_without_token=True)

    assert placed.addresses["0.0.0.0:8080"] == ["inference"]
    assert not any("management" in roles for roles in placed.addresses.values())
    assert "port 8080 serves predictions" in placed.notes


def test_management_and_metrics_share_no_port_either(tmp_path: Path) -> None:
    text = DOCKER_FILE.replace("0.0.0.0:8081", "0.0.0.0:8082")
    placed = Placed(tmp_path, text, management_without_token=True)

    assert placed.addresses == {"0.0.0.0:8080": ["inference"], "0.0.0.0:8082": ["metrics"]}
    assert "port 8082 serves metrics" in placed.notes


def test_management_on_the_control_socket_stays_there(tmp_path: Path) -> None:
    placed = Placed(tmp_path, f"management_address=unix:{STATE['TSCTL_SOCKET']}\n")

    assert (placed.addresses, placed.notes) == ({"0.0.0.0:8080": ["inference"]}, "")


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


def test_a_flag_gives_management_any_address(tmp_path: Path) -> None:
    placed = Placed(tmp_path, DOCKER_FILE, management_without_token=True, management_address="0.0.0.0:8081")

    assert placed.addresses["0.0.0.0:8081"] == ["management"]


def test_so_does_a_variable_of_tsctl(tmp_path: Path) -> None:
    environment = STATE | {"TSCTL_MANAGEMENT_ADDRESS": "0.0.0.0:8080", "TSCTL_MANAGEMENT_WITHOUT_TOKEN": "true"}

    assert Placed(tmp_path, None, environment).addresses == {"0.0.0.0:8080": ["inference", "management"]}


def test_a_variable_of_torchserve_is_no_flag(tmp_path: Path) -> None:
    environment = STATE | {"TS_MANAGEMENT_ADDRESS": "http://0.0.0.0:9001"}
    text = "enable_envvars_config=true\ndisable_token_authorization=true\n"

    assert Placed(tmp_path, text, environment).addresses["127.0.0.1:9001"] == ["management"]


def test_management_stays_inside_with_a_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o600)

    assert Placed(tmp_path, DOCKER_FILE, token_file=token).addresses["127.0.0.1:8081"] == ["management"]


def test_kserves_ports_hold_whatever_the_file_says(tmp_path: Path) -> None:
    placed = Placed(tmp_path, KSERVE_FILE, KSERVE, Host.KSERVE)

    assert placed.addresses == {"0.0.0.0:8080": ["inference"], "0.0.0.0:8082": ["metrics"]}
    assert placed.config.models == ("mnist=mnist.mar",)
    assert "`http://0.0.0.0:8085` is `0.0.0.0:8080` in this container" in placed.notes
    assert "it needs `--token-file` or `--disable-token-auth`" in placed.notes


def test_a_flag_wins_over_kserves_ports(tmp_path: Path) -> None:
    placed = Placed(tmp_path, KSERVE_FILE, KSERVE, Host.KSERVE, inference_address="0.0.0.0:9000")

    assert "0.0.0.0:9000" in placed.addresses


def test_disable_token_auth_opens_management_on_loopback_only(tmp_path: Path) -> None:
    placed = Placed(tmp_path, KSERVE_FILE, KSERVE, Host.KSERVE, management_without_token=True)

    assert placed.addresses["127.0.0.1:8085"] == ["management"]


@pytest.mark.parametrize(
    ("protocol", "variable", "expected"),
    [("v1", None, "kserve"), ("v2", None, "kservev2"), ("grpc-v2", None, "kservev2"), ("v2", "body", "body")],
)
def test_the_envelope_follows_the_protocol_without_a_file(
    tmp_path: Path, protocol: str, variable: str | None, expected: str
) -> None:
    environment = KSERVE | {"PROTOCOL_VERSION": protocol} | ({"TS_SERVICE_ENVELOPE": variable} if variable else {})
    placed = Placed(tmp_path, None, environment, Host.KSERVE)

    assert (placed.config.envelope, placed.config.models) == (expected, ("ALL",))


def test_the_envelope_follows_the_variable_where_the_file_allows_variables(tmp_path: Path) -> None:
    environment = KSERVE | {"TS_SERVICE_ENVELOPE": "kservev2"}

    assert Placed(tmp_path, KSERVE_FILE, environment, Host.KSERVE).config.envelope == "kservev2"
    without = KSERVE_FILE.replace("enable_envvars_config=true", "")
    assert Placed(tmp_path, without, environment, Host.KSERVE).config.envelope is None


def test_sagemaker_names_port_timeout_and_workers(tmp_path: Path) -> None:
    environment = STATE | {
        "SAGEMAKER_BIND_TO_PORT": "9090", "SAGEMAKER_MODEL_SERVER_TIMEOUT": "20", "SAGEMAKER_MODEL_SERVER_WORKERS": "2",
        "SAGEMAKER_TS_BATCH_SIZE": "4", "SAGEMAKER_MULTI_MODEL": "false",
    }  # fmt: skip
    placed = Placed(tmp_path, None, environment, Host.SAGEMAKER)

    assert placed.addresses == {"0.0.0.0:9090": ["inference"]}
    assert (placed.config.response_timeout, placed.config.default_workers) == (20.0, 2)
    assert "SAGEMAKER_TS_BATCH_SIZE has no effect here: `batchSize`" in placed.notes
    assert "MULTI_MODEL" not in placed.notes


def test_state_goes_elsewhere_where_home_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/proc/self")
    assert place({}, {}, None, Host.PLAIN, grpc=True).values["state_dir"].startswith("/tmp/tsctl-state-")

    monkeypatch.setenv("HOME", str(tmp_path))
    assert "state_dir" not in place({}, {}, None, Host.PLAIN, grpc=True).values
