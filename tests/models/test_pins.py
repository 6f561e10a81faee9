"""A registration may pin the version and the SHA-256 of its archive; another archive is refused, and leaves nothing."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.archives import model_files, write_files, write_mar
from tests.kit.daemon import StubDaemon, until
from tsctl.daemon.core.errors import ArchiveNotFound, BadRequest, InvalidModel
from tsctl.daemon.models.archives.digests import is_sealed, sums_of
from tsctl.daemon.models.archives.manifest import sha256_pin
from tsctl.daemon.models.persistence import restore
from tsctl.daemon.models.persistence.startup import Startup
from tsctl.daemon.models.reporting.model_state import ModelState

HANDLER = "def handle(data, context):\n    return data\n"


def digest_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


async def test_the_pinned_archive_is_served_and_the_pin_is_remembered(bench: StubDaemon) -> None:
    url = bench.mar()
    pin = digest_of(bench.store / url)

    model = await bench.register(url, sha256=pin, model_version="1.0")

    assert model.source.unpacked is not None and model.source.unpacked.name == pin
    assert bench.remembered["m/1.0"].request.sha256 == pin
    sums = sums_of(model.source.directory)
    assert sums.is_file()
    await bench.registrar.unregister("m", None)
    assert list(sums.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("pins", "says"),
    [
        pytest.param({"sha256": "0" * 64}, r"SHA-256 of `m-1.0.mar` is [0-9a-f]{64}; expected 0{64}", id="SHA-256"),
        pytest.param({"model_version": "2.0"}, "m-1.0.mar contains version 1.0; version 2.0 was asked", id="version"),
    ],
)
async def test_another_archive_is_refused(pins: dict[str, Any], says: str, bench: StubDaemon) -> None:
    with pytest.raises(InvalidModel, match=says):
        await bench.register(bench.mar(), **pins)

    assert (bench.names, bench.unpacked) == ([], 0)


async def test_a_file_that_is_served_in_place_may_be_pinned_and_a_directory_may_not(bench: StubDaemon) -> None:
    (bench.store / "handler.py").write_text("def handle(data, context):\n    return data\n")
    write_files(bench.store / "m", model_files())

    await bench.register("handler.py", sha256=digest_of(bench.store / "handler.py"), model_name="f")
    with pytest.raises(InvalidModel, match=r"SHA-256 of `handler.py` is"):
        await bench.register("handler.py", sha256="0" * 64, model_name="g")
    with pytest.raises(InvalidModel, match="a directory, which has no SHA-256"):
        await bench.register("m", sha256="0" * 64)

    assert bench.names == ["f/1.0"]


async def test_a_file_gets_the_version_that_is_asked_for_and_keeps_it_over_a_restart(bench: StubDaemon) -> None:
    (bench.store / "scorer.py").write_text(HANDLER)
    with pytest.raises(InvalidModel, match=r"`\.\./2` is no model version"):
        await bench.register("scorer.py", model_version="../2")

    model = await bench.register("scorer.py", model_version="2.0")

    assert (model.name, model.version) == ("scorer", "2.0")
    again = await bench.restart()
    assert again.names == ["scorer/2.0"]


async def test_two_versions_of_a_model_are_two_files(bench: StubDaemon) -> None:
    for folder in ("one", "two"):
        (bench.store / folder).mkdir()
        (bench.store / folder / "scorer.py").write_text(HANDLER)
    await bench.register("one/scorer.py")

    with pytest.raises(InvalidModel, match=r"Version 1.0 of scorer is served from `.*/one/scorer.py`, too"):
        await bench.register("one/scorer.py:handle", model_name="scorer", model_version="2.0")
    await bench.register("one/scorer.py", model_name="other")
    await bench.register("two/scorer.py", model_version="2.0")

    assert sorted(bench.names) == ["other/1.0", "scorer/1.0", "scorer/2.0"]


async def test_a_kept_archive_is_served_by_its_pin_only_where_any_path_may_be(bench: StubDaemon) -> None:
    url = bench.mar()
    pin = digest_of(bench.store / url)
    await bench.register(url)

    with pytest.raises(Exception, match=r"Model not found at: gone\.mar"):  # over TCP
        await bench.register("gone.mar", sha256=pin, model_name="other")
    other = await bench.register("gone.mar", sha256=pin, model_name="other", local_paths=True)

    assert other.source.directory.name == pin and bench.unpacked == 1


def altered(directory: Path) -> None:
    (directory / "handler.py").write_text("def handle(data, context):\n    return ['altered'] * len(data)\n")


def cut(directory: Path) -> None:
    (directory / "handler.py").unlink()


def linked(directory: Path) -> None:
    other = directory.parent.parent / "other.py"
    (directory / "handler.py").rename(other)
    (directory / "handler.py").symlink_to(other)


def named_wrongly(directory: Path) -> None:
    """Make a directory as of a daemon that hashed other bytes than were unpacked: nothing tells of its files."""
    altered(directory)
    sums_of(directory).unlink()


DAMAGE = pytest.mark.parametrize("damage", [altered, cut, linked, named_wrongly])


@DAMAGE
async def test_a_kept_directory_whose_files_are_not_the_pinned_archives_is_unpacked_again(
    damage: Callable[[Path], None], bench: StubDaemon
) -> None:
    url = bench.mar()
    first = await bench.register(url)
    text = (first.source.directory / "handler.py").read_bytes()
    damage(first.source.directory)

    again = await bench.register(url, sha256=digest_of(bench.store / url), model_name="other", local_paths=True)

    assert again.source.directory == first.source.directory and bench.unpacked == 1
    assert (again.source.directory / "handler.py").read_bytes() == text
    assert not (again.source.directory / "handler.py").is_symlink()


@DAMAGE
async def test_nor_is_it_served_by_its_pin_where_the_archive_is_gone(
    damage: Callable[[Path], None], bench: StubDaemon
) -> None:
    url = bench.mar()
    pin = digest_of(bench.store / url)
    first = await bench.register(url)
    (bench.store / url).unlink()
    damage(first.source.directory)

    with pytest.raises(ArchiveNotFound):
        await bench.register(url, sha256=pin, model_name="other", local_paths=True)

    assert bench.names == ["m/1.0"] and bench.unpacked == 1


@DAMAGE
async def test_nor_by_a_restart_which_unpacks_the_archive_again(
    damage: Callable[[Path], None], bench: StubDaemon
) -> None:
    url = bench.mar()
    first = await bench.register(url, sha256=digest_of(bench.store / url))
    text = (first.source.directory / "handler.py").read_bytes()
    damage(first.source.directory)

    again = await bench.restart()

    model = again.registry.find("m", "1.0")
    await until(lambda: model.state is ModelState.READY)
    assert model.source.directory == first.source.directory and again.unpacked == 1
    assert (model.source.directory / "handler.py").read_bytes() == text
    assert not (model.source.directory / "handler.py").is_symlink()


@DAMAGE
@pytest.mark.parametrize("left", ["nothing", "another archive"])
async def test_nor_by_a_restart_that_does_not_find_the_archive(
    damage: Callable[[Path], None], left: str, bench: StubDaemon
) -> None:
    url = bench.mar()
    first = await bench.register(url, sha256=digest_of(bench.store / url))
    (bench.store / url).unlink()
    if left != "nothing":
        write_mar(bench.store / url, model_files() | {"more": b"."})
    damage(first.source.directory)

    again = await bench.restart()

    assert again.registry.find("m", "1.0").state is ModelState.FAILED
    assert again.engine.workers == []


async def test_a_restart_serves_a_pinned_directory_at_once_where_nobody_has_written_to_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: StubDaemon
) -> None:
    url = bench.mar()
    first = await bench.register(url, sha256=digest_of(bench.store / url))
    (first.source.directory / "cache").write_bytes(b"of the handler")
    (bench.store / url).unlink()
    monkeypatch.setattr(restore, "holds_its_files", None)  # nothing is hashed
    again = StubDaemon(tmp_path)

    Startup(again.config, again.registry, again.registrar).restore()

    assert again.names == ["m/1.0"]


async def test_files_that_only_look_written_to_are_hashed_and_served_at_the_next_start_without(
    bench: StubDaemon,
) -> None:
    url = bench.mar()
    first = await bench.register(url, sha256=digest_of(bench.store / url))
    (bench.store / url).unlink()
    for file in first.source.directory.rglob("*"):
        file.touch()  # as in a copy of the state directory

    again = await bench.restart()

    model = again.registry.find("m", "1.0")
    await until(lambda: model.state is ModelState.READY)
    assert is_sealed(model.source.directory)


async def test_without_a_pin_a_restart_serves_what_is_there(bench: StubDaemon) -> None:
    first = await bench.register(bench.mar())
    altered(first.source.directory)

    again = await bench.restart()

    assert b"altered" in (again.registry.find("m").source.directory / "handler.py").read_bytes()


async def test_a_file_that_a_handler_has_added_changes_nothing(bench: StubDaemon) -> None:
    url = bench.mar()
    pin = digest_of(bench.store / url)
    first = await bench.register(url)
    (first.source.directory / "cache").write_bytes(b"of the handler")

    await bench.register("gone.mar", sha256=pin, model_name="other", local_paths=True)

    assert (first.source.directory / "cache").exists()


@pytest.mark.parametrize("text", ["", " ", "12", "g" * 64, "0" * 63 + " "])
def test_a_pin_that_is_no_sha_256_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="expected 64 hexadecimal digits, as `sha256sum FILE` prints them"):
        sha256_pin(text)
    assert sha256_pin("AB" * 32) == "ab" * 32 and sha256_pin(None) == ""
