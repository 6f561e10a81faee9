"""Where the daemon's files live, and that nobody else can put theirs there."""

import os
import stat
from pathlib import Path

import pytest

from tsctl.daemon import paths


def test_the_socket_is_in_the_runtime_directory_and_state_in_the_state_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    monkeypatch.setenv("XDG_STATE_HOME", "/var/state")
    assert paths.default_socket() == Path("/run/user/7/tsctl/control.sock")
    assert paths.default_state_dir() == Path("/var/state/tsctl")

    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert paths.default_socket() == Path(f"/tmp/tsctl-{os.getuid()}/control.sock")
    assert paths.default_state_dir() == Path("/home/someone/.local/state/tsctl")


def test_files_have_their_places() -> None:
    state = Path("/state")

    assert paths.pid_file(Path("/run/control.sock")) == Path("/run/control.pid")
    assert paths.daemon_log(state) == Path("/state/logs/daemon.log")
    assert paths.access_log(state) == Path("/state/logs/access.log")
    assert paths.model_log(state, "m", "1.0") == Path("/state/logs/m@1.0.log")
    assert paths.models_dir(state) == Path("/state/models")


def test_a_socket_path_may_have_107_bytes_and_no_more() -> None:
    longest = Path("/" + "x" * 106)
    paths.check_socket_path(longest)

    with pytest.raises(paths.PathError, match="has 108 bytes, and a Unix socket takes at most 107"):
        paths.check_socket_path(Path(f"{longest}x"))
    with pytest.raises(paths.PathError, match="has 121 bytes"):
        paths.check_socket_path(Path("/" + "é" * 60))


def test_a_new_directory_is_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o777)
    try:
        paths.make_private(tmp_path / "new", strict=True)
    finally:
        os.umask(old)
    paths.make_private(tmp_path / "a" / "b", strict=False)
    assert (tmp_path / "a" / "b").is_dir(), "parents are made"

    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_others_may_not_enter_a_strict_directory(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    paths.make_private(tmp_path / "open", strict=False)

    with pytest.raises(paths.PathError, match=r"others can enter .* \(mode 755\); make it 0700"):
        paths.make_private(tmp_path / "open", strict=True)


def test_a_link_is_no_strict_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    paths.make_private(tmp_path / "link", strict=False)

    with pytest.raises(paths.PathError, match="is not a directory"):
        paths.make_private(tmp_path / "link", strict=True)


def test_a_file_in_the_way_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(paths.PathError, match="is not a directory"):
        paths.make_private(tmp_path / "file", strict=False)
    with pytest.raises(paths.PathError, match=r"cannot make the directory .*: Not a directory"):
        paths.make_private(tmp_path / "file" / "below" / "it", strict=False)


@pytest.mark.parametrize(
    ("owner", "strict", "refused"),
    [
        pytest.param(12345, False, True, id="a stranger's is refused"),
        pytest.param(12345, True, True, id="a stranger's is refused when strict"),
        pytest.param(0, False, False, id="root's is taken"),
        pytest.param(0, True, True, id="root's is refused when strict"),
    ],
)
def test_somebody_elses_directory(
    owner: int, strict: bool, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    real = (tmp_path / "theirs").stat()
    theirs = os.stat_result((*real[:4], owner, *real[5:10]))
    monkeypatch.setattr(Path, "stat", lambda self, **_: theirs)
    monkeypatch.setattr(Path, "lstat", lambda self: theirs)
    monkeypatch.setattr(os, "getuid", lambda: 1000)

    if refused:
        with pytest.raises(paths.PathError, match=f"belongs to user {owner}, not to 1000"):
            paths.make_private(tmp_path / "theirs", strict=strict)
    else:
        paths.make_private(tmp_path / "theirs", strict=strict)
