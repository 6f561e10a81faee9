"""Sockets of a service manager are used for the addresses that they have, and no other process's are touched."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kit.build import make_config
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.endpoints import choose_endpoints
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.lifecycle import activation, instance
from tsctl.daemon.lifecycle.activation import PassedSocket, match_sockets, take_passed

PID = 4711


@pytest.fixture
def sockets() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listening_at(sockets: ExitStack, address: str, family: int = socket.AF_INET) -> socket.socket:
    made = sockets.enter_context(socket.socket(family, socket.SOCK_STREAM))
    made.bind((address, 0))
    made.listen()
    return made


def passed(listening: socket.socket, name: str = "tsctl.socket") -> PassedSocket:
    return PassedSocket(name, listening)


def port_of(listening: socket.socket) -> int:
    return int(listening.getsockname()[1])


def matched(config: Config, *given: PassedSocket) -> tuple[list[socket.socket | None], socket.socket | None]:
    return match_sockets(given, choose_endpoints(config), config.socket)


def test_a_socket_is_used_for_the_endpoint_of_its_address(tmp_path: Path, sockets: ExitStack) -> None:
    first, second = (listening_at(sockets, "127.0.0.1") for _ in range(2))
    config = make_config(
        tmp_path, inference_address=f"localhost:{port_of(first)}", metrics_address=f"127.0.0.1:{port_of(second)}",
        management_address="127.0.0.1:0",
    )  # fmt: skip

    assert [endpoint.flag for endpoint in choose_endpoints(config)] == [
        "--inference-address", "--management-address", "--metrics-address",
    ]  # fmt: skip
    assert matched(config, passed(second), passed(first)) == ([first, None, second], None)


def test_a_socket_of_both_families_is_every_address_of_this_machine(tmp_path: Path, sockets: ExitStack) -> None:
    both = listening_at(sockets, "::", socket.AF_INET6)
    config = make_config(tmp_path, inference_address=f"0.0.0.0:{port_of(both)}")

    assert matched(config, passed(both)) == ([both], None)


def test_a_socket_at_another_address_is_refused_with_its_name_and_the_remedy(
    tmp_path: Path, sockets: ExitStack
) -> None:
    other = listening_at(sockets, "127.0.0.1")
    config = make_config(tmp_path, inference_address="127.0.0.1:0")

    with pytest.raises(StartError) as raised:
        matched(config, passed(other, "web"))

    where = f"127.0.0.1:{port_of(other)}"
    assert str(raised.value) == f"the service manager passed on a socket at `{where}` (`web`), " + (
        "which is no address of this daemon"
    )
    assert raised.value.hint == f"name it with `--inference-address {where}`, or take it out of the socket unit"


def test_a_unix_socket_that_is_not_the_control_socket_is_refused(tmp_path: Path, sockets: ExitStack) -> None:
    other = sockets.enter_context(socket.socket(socket.AF_UNIX))
    other.bind(str(tmp_path / "other.sock"))
    other.listen()

    with pytest.raises(StartError, match=r"other\.sock` \(`tsctl.socket`\), which is no address"):
        matched(make_config(tmp_path, inference_address="127.0.0.1:0"), passed(other))


def test_one_address_is_not_listened_on_twice(tmp_path: Path, sockets: ExitStack) -> None:
    one = listening_at(sockets, "127.0.0.1")
    config = make_config(tmp_path, inference_address=f"127.0.0.1:{port_of(one)}")

    with pytest.raises(StartError, match="which is no address"):
        matched(config, passed(one), passed(one))


def test_a_place_with_the_managers_sockets_binds_the_others_and_keeps_the_managers_file(
    tmp_path: Path, sockets: ExitStack
) -> None:
    given = listening_at(sockets, "127.0.0.1")
    config = make_config(
        tmp_path, inference_address=f"127.0.0.1:{port_of(given)}", metrics_address="127.0.0.1:0"
    )  # fmt: skip
    control = sockets.enter_context(socket.socket(socket.AF_UNIX))
    control.bind(str(config.socket))
    control.listen()

    place = instance.take(config, choose_endpoints(config), [passed(given), passed(control)])

    (_, first), (_, second) = place.bound
    assert first is given
    assert port_of(second) > 0
    assert place.control is control
    place.leave()
    assert config.socket.exists()
    assert not list(tmp_path.glob("*.pid"))
    second.close()


def test_sockets_of_another_process_are_left_alone() -> None:
    environment = {"LISTEN_PID": str(PID + 1), "LISTEN_FDS": "1"}

    assert take_passed(environment, PID) == []
    assert environment == {"LISTEN_PID": str(PID + 1), "LISTEN_FDS": "1"}


def environment_of(count: str = "1", names: str = "") -> dict[str, str]:
    return {"LISTEN_PID": str(PID), "LISTEN_FDS": count} | ({"LISTEN_FDNAMES": names} if names else {})


def test_passed_sockets_are_taken_once_by_name_and_not_inherited_by_children(
    sockets: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = listening_at(sockets, "127.0.0.1")
    descriptor = os.dup(source.fileno())
    os.set_inheritable(descriptor, True)
    monkeypatch.setattr(activation, "FIRST", descriptor)
    environment = environment_of(names="web:admin") | {"HOME": "/"}

    (taken,) = take_passed(environment, PID)

    assert taken.name == "web"
    assert taken.address == f"127.0.0.1:{port_of(source)}"
    assert not taken.listening.get_inheritable()
    assert environment == {"HOME": "/"}
    taken.listening.close()


def test_a_descriptor_that_does_not_listen_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    connected, other = socket.socketpair()
    descriptor = connected.detach()
    monkeypatch.setattr(activation, "FIRST", descriptor)

    with pytest.raises(StartError, match=rf"descriptor {descriptor} of LISTEN_FDS \(`web`\) is no listening stream"):
        take_passed(environment_of(names="web"), PID)

    other.close()


def test_a_descriptor_that_is_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "file").open("w") as file:
        monkeypatch.setattr(activation, "FIRST", file.fileno())

        with pytest.raises(StartError, match="is no socket"):
            take_passed(environment_of(), PID)


def test_a_count_that_is_no_number_is_refused() -> None:
    with pytest.raises(StartError, match="LISTEN_FDS is `many`"):
        take_passed(environment_of("many"), PID)
