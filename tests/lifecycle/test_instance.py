"""A daemon's place is taken once, inherited without a gap, and left by its last owner."""

import os
import socket
from pathlib import Path

import pytest

from tests.kit.build import make_config
from tsctl.daemon import paths
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.endpoints import choose_endpoints
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.lifecycle import instance
from tsctl.daemon.lifecycle.instance import Instance
from tsctl.daemon.lifecycle.sockets import take_place
from tsctl.daemon.lifecycle.upgrade.messages import Inheritance


def config_of(folder: Path, **flags: str) -> Config:
    return make_config(folder, **{"inference_address": "127.0.0.1:0"} | flags)


def take(config: Config) -> Instance:
    return instance.take(config, choose_endpoints(config))


def inherit(of: Instance, config: Config) -> Instance:
    """As another process would, with descriptors of its own."""
    said = of.inheritance([], stand_in=False)
    bound = [type(each)(each.flag, each.host, each.port, os.dup(each.descriptor)) for each in said.endpoints]
    locks = os.dup(said.locks[0]), os.dup(said.locks[1])
    return instance.inherit(
        Inheritance(bound, os.dup(said.control), said.inode, locks, []), config, choose_endpoints(config)
    )


def close(*places: Instance) -> None:
    for each in places:
        for sock in (each.control, *(listening for _, listening in each.bound)):
            sock.close()


def test_the_place_is_locked_until_both_the_old_and_the_new_have_left_it(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    old = take(config)
    new = inherit(old, config)

    old.hand_over()
    old.leave()

    with pytest.raises(StartError, match="already listens"):
        take_place(config.socket, config.state_dir)
    new.ours = True
    new.claim()
    assert int(paths.pid_file(config.socket).read_text()) == os.getpid()
    new.leave()
    assert not config.socket.exists()
    close(old, new)
    again = take(config)
    again.leave()
    close(again)


def test_a_client_is_accepted_by_whoever_comes_first(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    old = take(config)
    waiting = socket.create_connection(old.bound[0][1].getsockname())
    new = inherit(old, config)
    old.hand_over()
    close(old)

    accepted, _ = new.bound[0][1].accept()

    accepted.sendall(b"x")
    assert waiting.recv(1) == b"x"
    assert new.inode == config.socket.stat().st_ino
    assert not os.get_inheritable(new.control.fileno())
    accepted.close()
    waiting.close()
    new.ours = True
    new.leave()
    close(new)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        pytest.param({}, {"metrics_address": "127.0.0.1:0"}, "`127.0.0.1:0` is new", id="one more"),
        pytest.param({"metrics_address": "127.0.0.1:0"}, {}, "`127.0.0.1:0` is no longer there", id="one less"),
    ],
)
def test_addresses_are_kept_and_not_changed(
    tmp_path: Path, before: dict[str, str], after: dict[str, str], message: str
) -> None:
    old = take(config_of(tmp_path, **before))

    with pytest.raises(StartError, match=message):
        inherit(old, config_of(tmp_path, **after))

    old.leave()
    close(old)
