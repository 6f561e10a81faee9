"""A change is due when the files have come to rest, and files that others may write are not watched."""

import os
import stat
from pathlib import Path

import pytest

from tests.kit.archives import write_files
from tsctl.daemon.targets import read_target
from tsctl.errors import CliError
from tsctl.serving.watching import (
    GONE,
    SETTLED,
    Access,
    ChangeDetector,
    Stamp,
    accesses,
    check_access,
    refusal,
    stamps_of,
    watched_files,
    writable_by_others,
)

FILE, OTHER = Path("/w/handler.py"), Path("/w/words.py")
OLD, NEW, NEWER = Stamp(1, 1, 1), Stamp(2, 2, 1), Stamp(3, 3, 1)
ME, SOMEBODY, MY_GROUP, THEIR_GROUP = 1000, 1001, 1000, 100


@pytest.mark.parametrize(
    ("known", "seen"),
    [
        pytest.param(OLD, [(OLD, 0, False), (OLD, 1, False), (OLD, 1e6, False)], id="an unchanged file is never due"),
        pytest.param(OLD, [(NEW, 5, False), (NEW, 5.5, False), (NEW, 6, True)], id="a change once it has settled"),
        pytest.param(OLD, [(NEW, 5, False), (NEWER, 6, False), (NEWER, 7, True)], id="not while it is being written"),
        pytest.param(OLD, [(NEW, 5, False), (OLD, 6, False)], id="nor when it is taken back"),
        pytest.param(OLD, [(None, 5, False), (None, 6, False), (None, 5 + GONE / SETTLED, True)], id="gone: longer"),
        pytest.param(None, [(None, 5, False), (None, 1e6, False)], id="never there"),
    ],
)
def test_a_change_is_due_once_it_has_settled(known: Stamp | None, seen: list[tuple[Stamp | None, float, bool]]) -> None:
    detector = ChangeDetector({FILE: known, OTHER: None})

    for stamp, times, due in seen:
        assert detector.due({FILE: stamp, OTHER: None}, times * SETTLED) is due, times


def test_a_change_that_was_served_or_refused_is_not_tried_again() -> None:
    detector = ChangeDetector({FILE: OLD})
    detector.due({FILE: NEW}, 5.0)
    detector.served({FILE: NEW})

    assert not detector.due({FILE: NEW}, 100.0)


def test_a_save_during_the_replacement_is_due_afterwards() -> None:
    detector = ChangeDetector({FILE: OLD})
    detector.served({FILE: NEW})
    detector.due({FILE: NEWER}, 6.0)

    assert detector.due({FILE: NEWER}, 6.0 + SETTLED)


def test_a_save_within_a_second_and_of_the_same_size_is_a_change(tmp_path: Path) -> None:
    file = tmp_path / "h.py"
    file.write_text("a")
    before = stamps_of([file])
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))

    assert stamps_of([file]) != before


@pytest.mark.parametrize(
    ("text", "watched"),
    [
        pytest.param("h.py", {"h.py", "words.py", "net.pth", "net.py"}, id="a handler, what it imports, its model"),
        pytest.param("net.pth", {"net.pth", "net.py"}, id="weights and their model file"),
        pytest.param("app.net:f", {"app/net.py", "app/parts.py"}, id="a module"),
        pytest.param("m.mar", {"m.mar"}, id="an archive"),
        pytest.param("pytest:Module", set(), id="an installed module has none"),
    ],
)
def test_the_files_of_which_a_change_counts(text: str, watched: set[str], tmp_path: Path) -> None:
    files = {
        "h.py": b"import words\n", "words.py": b"", "net.pth": b"x", "m.mar": b"PK",
        "net.py": b"from torch import nn\nclass Net(nn.Module): pass\n",
        "app/net.py": b"from . import parts\n", "app/parts.py": b"",
    }  # fmt: skip
    write_files(tmp_path, files)

    found = watched_files(read_target(text, tmp_path))

    assert {str(file.relative_to(tmp_path)) for file in found if file.exists()} == watched


def test_a_configuration_that_is_written_later_is_a_change(tmp_path: Path) -> None:
    write_files(tmp_path, {"h.py": b""})
    files = watched_files(read_target("h.py", tmp_path))
    before = stamps_of(files)
    write_files(tmp_path, {"model-config.yaml": b"batchSize: 2"})

    assert stamps_of(files) != before


def entry(mode: int, uid: int = ME, gid: int = THEIR_GROUP) -> Access:
    return Access(FILE, mode, uid, gid)


@pytest.mark.parametrize(
    ("access", "refused"),
    [
        pytest.param(entry(0o644), False, id="only mine"),
        pytest.param(entry(0o644, uid=0), False, id="root's"),
        pytest.param(entry(0o664, gid=MY_GROUP), False, id="a group of my own, as umask 002 makes files"),
        pytest.param(entry(0o664), True, id="a group with others"),
        pytest.param(entry(0o646), True, id="everybody"),
        pytest.param(entry(stat.S_ISVTX | 0o777), True, id="a sticky directory: others can put modules into it"),
        pytest.param(entry(0o600, uid=SOMEBODY), True, id="another user's"),
    ],
)
def test_who_may_write(access: Access, refused: bool) -> None:
    assert bool(writable_by_others([access], ME, frozenset({MY_GROUP}))) is refused


def test_the_refusal_has_the_command_that_mends_it() -> None:
    message, remedy = refusal([entry(0o666), Access(Path("/w/my dir"), 0o777, ME, MY_GROUP)], ME)

    assert message == "others may write `/w/handler.py`, and so change the code that runs"
    assert remedy == "`chmod go-w /w/handler.py '/w/my dir'`"


def test_the_mode_of_a_directory_that_is_everybodys_by_intention_stays() -> None:
    shared = Access(Path("/tmp"), stat.S_ISVTX | 0o777, 0, 0)

    message, remedy = refusal([entry(0o666), shared], ME)

    assert message == "everybody may put files into `/tmp`, and so change the code that runs"
    assert remedy == "move the files into a directory of your own, or leave out `--watch`"


def test_the_command_that_is_named_mends_it(tmp_path: Path) -> None:
    write_files(tmp_path, {"h.py": b""})
    (tmp_path / "h.py").chmod(0o666)
    target = read_target("h.py", tmp_path)

    with pytest.raises(CliError, match="others may write") as caught:
        check_access(target)

    assert os.system(caught.value.hint.strip("`")) == 0
    check_access(target)


def test_a_directory_above_counts_unless_it_is_sticky(tmp_path: Path) -> None:
    write_files(tmp_path / "a" / "b", {"h.py": b""})
    for mode, found in ((0o777, 1), (0o1777, 0)):
        (tmp_path / "a").chmod(mode)

        looked = writable_by_others(list(accesses([tmp_path / "a" / "b" / "h.py"])), os.getuid(), frozenset())
        assert [each.path for each in looked if each.path == tmp_path / "a"] == [tmp_path / "a"] * found


def test_what_has_no_file_here_cannot_be_watched(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="`pytest:Module` has no file here to watch"):
        check_access(read_target("pytest:Module", tmp_path))
