"""The snapshot file holds what was put in, and is whole whenever the power goes."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.models.archives.unpack import ArchiveMark
from tsctl.daemon.models.persistence.snapshot import (
    FORMAT,
    BrokenSnapshot,
    Snapshot,
    SnapshotEntry,
    decode_snapshot,
    read_snapshot,
    remove_drafts,
    set_aside,
    write_snapshot,
)
from tsctl.daemon.models.persistence.snapshot_file import encode_snapshot
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.settings import Overrides
from tsctl.handlers.wire import Declared, Input

words = st.text(max_size=20)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_\-.]*", fullmatch=True)
counts = st.integers(0, 1000)
seconds = st.floats(0, 1e9)
overrides = st.builds(
    Overrides,
    batch_size=st.none() | counts,
    max_delay=st.none() | seconds,
    policy=st.none() | words,
    workers=st.none() | counts,
    max_workers=st.none() | counts,
    fallback_workers=counts,
    response_timeout=st.none() | seconds,
    startup_timeout=st.none() | seconds,
    max_memory=st.none() | counts,
    cpus=st.none() | st.lists(counts).map(tuple),
    retry=st.none() | st.booleans(),
    since=st.dictionaries(st.sampled_from(["workers", "batch_size"]), words),
)
declared = st.builds(Declared, st.just([Input("texts", "text", "list[str]")]), batches=st.booleans(), batch_size=counts)
requests = st.builds(
    Registration,
    url=words,
    model_name=st.none() | words,
    handler=st.none() | words,
    overrides=overrides,
    synchronous=st.booleans(),
    local_paths=st.booleans(),
)
entries = st.builds(
    SnapshotEntry,
    name=names,
    version=names,
    request=requests,
    default=st.booleans(),
    chosen=st.booleans(),
    unpacked=st.none() | names,
    archive=st.none() | st.builds(ArchiveMark, file=words, size=counts, modified=st.integers(0, 2**63 - 1)),
    listed=st.booleans(),
    declared=st.none() | declared,
    notes=st.lists(words, max_size=2).map(tuple),
)
snapshots = st.builds(Snapshot, models=st.lists(entries, max_size=4).map(tuple))

OLD = encode_snapshot(Snapshot(models=(SnapshotEntry(name="old", version="1.0", request=Registration(url="old.mar")),)))
NEW = encode_snapshot(Snapshot(models=(SnapshotEntry(name="new", version="1.0", request=Registration(url="new.mar")),)))


@given(snapshots)
def test_what_is_written_is_read(written: Snapshot) -> None:
    assert decode_snapshot(encode_snapshot(written)) == written


def test_there_may_be_none(tmp_path: Path) -> None:
    assert read_snapshot(tmp_path / "snapshot.json") is None


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(NEW[: len(NEW) // 2], id="cut short"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b'{"models": [{"name": 3}]}', id="a name that is a number"),
        pytest.param(b'{"models": [{"name": "m", "version": "1"}]}', id="a version that nobody asked for"),
        pytest.param(b"[" * 100_000, id="nested without end"),
        pytest.param(encode_snapshot(Snapshot(version=FORMAT + 1)), id="a form of the future"),
    ],
)
def test_what_is_no_snapshot_is_broken(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_bytes(content)

    with pytest.raises(BrokenSnapshot) as caught:
        read_snapshot(file)

    assert str(caught.value) != ""


def test_a_file_that_cannot_be_read_is_broken(tmp_path: Path) -> None:
    with pytest.raises(BrokenSnapshot, match="Is a directory"):
        read_snapshot(tmp_path)


def entry_with(overrides: Any, **entry: Any) -> bytes:
    """Write a snapshot as another version of tsctl may."""
    request = {"url": "m.mar", "overrides": overrides}
    models = [{"name": "m", "version": "1", "request": request} | entry]
    return json.dumps({"version": FORMAT, "models": models}).encode()


@pytest.mark.parametrize(
    "declared",
    [
        pytest.param([[["smell", "scent", ""]], True], id="an input of a later version"),
        pytest.param({"inputs": []}, id="another form"),
        pytest.param("list[str]", id="no declaration"),
    ],
)
def test_what_a_later_version_added_is_no_harm(declared: Any) -> None:
    content = entry_with({"batch_size": 4, "colour": "red"}, colour="red", declared=declared)

    request = Registration(url="m.mar", overrides=Overrides(batch_size=4))
    assert decode_snapshot(content).models == (SnapshotEntry(name="m", version="1", request=request),)


def test_the_name_that_overrides_had_is_read() -> None:
    """Daemons that run from an earlier checkout have written it, and are upgraded to this one."""
    request = {"url": "m.mar", "wishes": {"batch_size": 4, "cpus": [0], "since": {"batch_size": "set"}}}
    content = json.dumps({"version": 2, "models": [{"name": "m", "version": "1", "request": request}]}).encode()

    (read,) = decode_snapshot(content).models

    overrides = Overrides(batch_size=4, cpus=(0,), since={"batch_size": "set"})
    assert read.request == Registration(url="m.mar", overrides=overrides)


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": "4"}, {"max_delay": "soon"}, {"policy": 1}, {"cpus": "0-3"}, {"cpus": ["0"]},
        {"retry": 1}, {"max_memory": "4GiB"}, {"since": {"workers": 1}}, {"since": []}, [], 1,
    ],
    ids=str,
)  # fmt: skip
def test_overrides_of_a_wrong_type_break_a_snapshot(wrong: Any) -> None:
    with pytest.raises(BrokenSnapshot, match="Expected `"):
        decode_snapshot(entry_with(wrong))


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_snapshot(tmp_path / "snapshot.json", NEW)
    finally:
        os.umask(before)

    assert (tmp_path / "snapshot.json").stat().st_mode & 0o777 == 0o600


def test_a_draft_is_on_the_disk_before_it_gets_the_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        steps.append(f"fsync {'directory' if path == tmp_path else 'draft'} of {path.stat().st_size > 0}")
        fsync(descriptor)

    def noted_rename(source: str, target: Path) -> None:
        steps.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_rename)

    write_snapshot(tmp_path / "snapshot.json", NEW)

    assert steps == ["fsync draft of True", "rename", "fsync directory of True"]


class PowerCut(BaseException):
    """Nothing that comes after this happens."""


STEPS = ("mkstemp", "write", "fsync of the draft", "rename", "fsync of the directory")


def cut_power(monkeypatch: pytest.MonkeyPatch, step: str, *, after: bool) -> None:
    """Make one step of writing the last that happens, or the first that does not."""
    fsyncs = 0

    def cutting(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def cut(*given: Any, **options: Any) -> Any:
            nonlocal fsyncs
            what = name
            if name == "fsync":
                fsyncs += 1
                what = "fsync of the draft" if fsyncs == 1 else "fsync of the directory"
            if what != step:
                return call(*given, **options)
            if after:
                call(*given, **options)
            raise PowerCut

        return cut

    class Draft:
        """A file whose `write` may be cut."""

        def __init__(self, descriptor: int, mode: str) -> None:
            self._file = fdopen(descriptor, mode, 0)

        def write(self, content: bytes) -> None:
            if step == "write":
                self._file.write(content[: len(content) // 2] if after else b"")
                raise PowerCut
            self._file.write(content)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def __enter__(self) -> "Draft":
            return self

        def __exit__(self, *error: object) -> None:
            self._file.close()

    fdopen = os.fdopen
    monkeypatch.setattr(os, "fdopen", Draft)
    monkeypatch.setattr(os, "fsync", cutting("fsync", os.fsync))
    monkeypatch.setattr(os, "replace", cutting("rename", os.replace))
    monkeypatch.setattr(tempfile, "mkstemp", cutting("mkstemp", tempfile.mkstemp))
    monkeypatch.setattr(os, "unlink", lambda path: None)  # a crash tidies nothing up


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_crash_between_any_two_steps_leaves_the_old_or_the_new(
    step: str, after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "snapshot.json"
    file.write_bytes(OLD)
    with monkeypatch.context() as patched:
        cut_power(patched, step, after=after)
        with pytest.raises(PowerCut):
            write_snapshot(file, NEW)

    renamed = STEPS.index(step) + after > STEPS.index("rename")
    assert file.read_bytes() == (NEW if renamed else OLD)
    remove_drafts(tmp_path)
    assert list(tmp_path.iterdir()) == [file]


def test_a_write_that_fails_leaves_the_old_one_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "snapshot.json"
    file.write_bytes(OLD)
    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(OSError, match="No space left"):
        write_snapshot(file, NEW)

    assert list(tmp_path.iterdir()) == [file] and file.read_bytes() == OLD


def test_a_broken_file_set_aside_never_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"

    asides = []
    for content in ("first", "second"):
        file.write_text(content)
        asides.append(set_aside(file))

    assert [aside.name for aside in asides] == ["snapshot.broken-1.json", "snapshot.broken-2.json"]
    assert [aside.read_text() for aside in asides] == ["first", "second"]
    assert not file.exists()
