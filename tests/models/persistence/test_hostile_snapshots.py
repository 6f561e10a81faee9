"""A snapshot that another program wrote reaches nothing outside the directory of unpacked archives."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.archives import model_files, write_files
from tests.kit.daemon import StubDaemon
from tsctl.daemon.models.persistence.snapshot import BrokenSnapshot, decode_snapshot

HOSTILE = [
    pytest.param("../../victim", id="climbs"),
    pytest.param("..", id="the directory above"),
    pytest.param(".", id="the directory itself"),
    pytest.param("", id="empty"),
    pytest.param("a/../../../victim", id="goes down and climbs"),
    pytest.param("a/b", id="two steps down"),
    pytest.param("/{root}/victim", id="absolute"),
    pytest.param("victim\n", id="ends with a line feed"),
    pytest.param("vic\0tim", id="a zero byte"),
    pytest.param("x" * 256, id="longer than a name may be"),
    pytest.param(".unpacking-1", id="hidden, as drafts are"),
]


def document(**entry: Any) -> bytes:
    values = {"name": "m", "version": "1.0", "request": {"url": "m.mar"}} | entry
    return json.dumps({"models": [values]}).encode()


@pytest.mark.parametrize("unpacked", HOSTILE)
def test_unpacked_is_a_plain_name(unpacked: str) -> None:
    with pytest.raises(BrokenSnapshot, match=r"`unpacked` of m/1\.0 is `"):
        decode_snapshot(document(unpacked=unpacked))


@pytest.mark.parametrize("entry", [{"name": "../m"}, {"name": ""}, {"version": "1/0"}, {"version": ""}])
def test_names_and_versions_are_as_an_archive_may_have_them(entry: dict[str, str]) -> None:
    with pytest.raises(BrokenSnapshot, match=r"is not a (model name|version)"):
        decode_snapshot(document(**entry))


@settings(deadline=None)  # the machine may be busy
@given(st.text())
def test_whatever_is_read_is_one_step_below(unpacked: str) -> None:
    folder = Path("/state/models")
    try:
        entry = decode_snapshot(document(unpacked=unpacked)).models[0]
    except BrokenSnapshot:
        return

    assert entry.unpacked is not None
    assert (folder / entry.unpacked).resolve().parent == folder


@pytest.mark.parametrize("unpacked", HOSTILE)
@pytest.mark.parametrize("serves", [True, False], ids=["a model is there", "no model is there"])
async def test_nothing_outside_is_served_or_removed(serves: bool, unpacked: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    write_files(victim, model_files() if serves else {"precious": b"."})
    before = sorted(path.name for path in victim.rglob("*"))

    bench = StubDaemon(tmp_path)
    bench.snapshot.write_bytes(document(unpacked=unpacked.format(root=tmp_path)))

    again = await bench.restart()

    for model in list(again.registry):
        assert again.models_dir in model.source.directory.resolve().parents
        await again.registrar.unregister(model.name, model.version)
    assert sorted(path.name for path in victim.rglob("*")) == before
    assert again.models_dir.is_dir()


async def test_a_link_in_the_directory_is_removed_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    victim = write_files(tmp_path / "victim", model_files())

    bench = StubDaemon(tmp_path)
    (bench.models_dir / "link").symlink_to(victim)
    bench.snapshot.write_bytes(document(unpacked="link"))

    again = await bench.restart()

    assert not (bench.models_dir / "link").is_symlink()
    assert [model.lost for model in again.registry] == [True]
    await again.registrar.unregister("m", "1.0")
    assert (victim / "MAR-INF" / "MANIFEST.json").is_file()
