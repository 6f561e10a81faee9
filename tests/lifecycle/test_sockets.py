"""One daemon for a socket and a state directory; addresses that cannot be used are sentences."""

import os
import socket
import stat
from pathlib import Path

import pytest

from tsctl.daemon.config.endpoints import address_of, parse_address
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.lifecycle import sockets
from tsctl.daemon.lifecycle.sockets import Lock, bind_control, bind_tcp, take_place, unlink_if_ours


def test_a_stale_socket_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    dead, _ = bind_control(path)
    dead.close()  # without unlinking it, as after a crash

    control, inode = bind_control(path)

    with control, socket.socket(socket.AF_UNIX) as client:
        assert inode == path.stat().st_ino
        client.connect(str(path))


def test_only_the_owner_may_use_the_control_socket(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        control, _ = bind_control(tmp_path / "control.sock")
        mask = os.umask(0)
    finally:
        os.umask(old)

    with control:
        assert stat.S_IMODE((tmp_path / "control.sock").stat().st_mode) == 0o600
        assert mask == 0, "the umask is as before"


def test_a_control_socket_that_cannot_be_bound_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"cannot listen on `.*control.sock`: No such file or directory"):
        bind_control(tmp_path / "missing" / "control.sock")


def test_only_our_own_socket_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    path.touch()

    unlink_if_ours(path, path.stat().st_ino + 1)
    assert path.exists()

    unlink_if_ours(path, path.stat().st_ino)
    assert not path.exists()
    unlink_if_ours(path, 1)  # somebody removed it: nothing to do


def test_a_second_lock_says_which_pid_has_the_first(tmp_path: Path) -> None:
    first = Lock(tmp_path / "lock", "pid {pid} has it", "a hint")

    with pytest.raises(StartError, match=f"pid {os.getpid()} has it") as caught:
        Lock(tmp_path / "lock", "pid {pid} has it", "a hint")

    assert caught.value.hint == "a hint"
    first.release()


def test_a_released_lock_can_be_taken_again_and_leaves_no_file(tmp_path: Path) -> None:
    Lock(tmp_path / "lock", "", "").release()
    assert not (tmp_path / "lock").exists()

    again = Lock(tmp_path / "lock", "", "")

    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    again.release()


def test_files_in_a_directory_that_is_closed_meanwhile_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, control = Lock(tmp_path / "lock", "", ""), tmp_path / "socket"
    control.touch()
    monkeypatch.setattr(Path, "unlink", _refuse)

    unlink_if_ours(control, control.stat().st_ino)
    lock.release()

    assert control.exists()
    with pytest.raises(StartError, match="cannot listen on"):
        bind_control(control)
    Lock(tmp_path / "lock", "", "").forget()  # which was released


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_a_lock_file_of_a_dead_daemon_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("123456789012\n")

    lock = Lock(tmp_path / "lock", "", "")

    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    lock.release()


def test_taking_a_place_locks_the_socket_and_the_state(tmp_path: Path) -> None:
    ours = tmp_path / "run" / "control.sock"
    locks = take_place(ours, tmp_path / "state")

    with pytest.raises(StartError, match=rf"a daemon with pid {os.getpid()} already listens on `{ours}`"):
        take_place(ours, tmp_path / "other")
    with pytest.raises(StartError, match=rf"the daemon with pid {os.getpid()} already uses the state directory"):
        take_place(tmp_path / "run2" / "control.sock", tmp_path / "state")

    assert not (tmp_path / "run2" / "control.pid").exists(), "the second place was given back"
    for lock in locks:
        lock.release()


def test_a_socket_path_that_is_too_long_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="a Unix socket takes at most 107"):
        take_place(tmp_path / ("x" * 120) / "control.sock", tmp_path / "state")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9000", ("127.0.0.1", 9000)),
        ("localhost", ("localhost", 8080)),
        ("http://0.0.0.0:80/", ("0.0.0.0", 80)),
        ("[::1]:9000", ("::1", 9000)),
        ("[::1]", ("::1", 8080)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("*:9000", ("::", 9000)),
        ("*", ("::", 8080)),
    ],
)
def test_an_address_is_host_and_port(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    ["", ":8080", "host:", "host:port", "host:65536", "host:-1", "host:²", "host:" + "9" * 5000, "https://host:443",
     "host/path:80", "unix:/run/socket"],
)  # fmt: skip
def test_what_is_no_address_is_a_sentence(text: str) -> None:
    with pytest.raises(StartError, match="is no address to listen on") as caught:
        parse_address(text)

    assert "HOST:PORT" in caught.value.hint


def test_port_zero_lets_the_kernel_choose() -> None:
    with bind_tcp("127.0.0.1:0") as listening:
        port = listening.getsockname()[1]

        assert port != 0
        assert address_of(listening) == f"http://127.0.0.1:{port}"
        assert not listening.getblocking()


@pytest.mark.parametrize("text", ["*:0", "[::]:0"])
def test_a_star_is_every_address_of_ipv4_and_ipv6(text: str) -> None:
    with bind_tcp(text) as listening:
        host, port = listening.getsockname()[:2]

        for address in ("127.0.0.1", "::1") if host == "::" else ("127.0.0.1",):
            socket.create_connection((address, port), timeout=20.0).close()


def test_without_ipv6_a_star_is_every_address_of_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_has_ipv6", lambda: False)

    with bind_tcp("*:0") as listening:
        assert listening.getsockname()[0] == "0.0.0.0"


def test_a_port_in_use_is_named() -> None:
    with bind_tcp("127.0.0.1:0") as listening:
        port = listening.getsockname()[1]

        with pytest.raises(StartError, match=f"port {port} on 127.0.0.1 is in use by another program") as caught:
            bind_tcp(f"127.0.0.1:{port}")

    assert "--inference-address" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("192.0.2.1:0", "cannot listen on `192.0.2.1:0`", id="another machine's"),
        pytest.param("a..b:80", "`a..b` is no host name", id="an impossible name"),
    ],
)
def test_an_address_that_is_not_ours_is_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(StartError, match=sentence):
        bind_tcp(text)


def test_an_ipv6_address_is_shown_in_brackets() -> None:
    class Listening(socket.socket):
        def getsockname(self) -> tuple[str, int, int, int]:
            return ("::1", 8080, 0, 0)

    with Listening() as listening:
        assert address_of(listening) == "http://[::1]:8080"
