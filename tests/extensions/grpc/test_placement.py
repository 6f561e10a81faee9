"""Addresses of gRPC in a container: whatever nobody named follows the host, and management stays inside."""

from pathlib import Path

from tests.tsctl.container.kserve_file import KSERVE_FILE
from tests.tsctl.container.placed import DOCKER_FILE, KSERVE, Placed
from tsctl.container.host import Host
from tsctl.container.placement import place


def test_management_stays_inside_with_a_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o600)
    placed = Placed(tmp_path, DOCKER_FILE, token_file=token)

    assert placed.config.grpc_management_address == ("127.0.0.1:7071",)
    assert placed.config.grpc_address == ("0.0.0.0:7070",)


def test_kserves_ports_hold_whatever_the_file_says(tmp_path: Path) -> None:
    placed = Placed(tmp_path, KSERVE_FILE, KSERVE, Host.KSERVE)

    assert placed.config.grpc_address == ("0.0.0.0:8081", "0.0.0.0:7070")


def test_management_of_a_file_gives_way_to_grpc(tmp_path: Path) -> None:
    text = KSERVE_FILE.replace("management_address=http://0.0.0.0:8085", "management_address=http://0.0.0.0:8081")
    placed = Placed(tmp_path, text, KSERVE, Host.KSERVE, management_without_token=True)

    assert "port 8081 serves predictions" in placed.notes
    assert not any("management" in roles for roles in placed.addresses.values())


def test_where_it_is_not_installed_kserves_ports_stay_closed() -> None:
    assert "grpc_address" not in place({}, KSERVE, None, Host.KSERVE, grpc=False).values
