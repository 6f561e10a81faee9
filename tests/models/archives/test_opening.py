"""An opened archive stays if a model was made of it, and leaves nothing if none was."""

import asyncio
import shutil
import threading
from errno import ENOSPC
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.kit.archives import model_files, write_files, write_mar
from tests.kit.build import make_config
from tsctl.daemon import paths
from tsctl.daemon.core.errors import ArchiveNotFound, Conflict, NotStored
from tsctl.daemon.models.archives import download, opening
from tsctl.daemon.models.archives.opening import Archives, Contents, Directories
from tsctl.daemon.models.archives.unpack import Limits, unpack
from tsctl.daemon.models.registrar import no_progress
from tsctl.daemon.models.request import Registration


class Opened:
    """The archives of a store, over an empty state directory."""

    def __init__(self, root: Path) -> None:
        self.store = root / "store"
        self.store.mkdir()
        config = make_config(root, model_store=str(self.store))
        self.folder = paths.models_dir(config.state_dir)
        self.folder.mkdir(parents=True)
        self.directories = Directories(self.folder, Limits(2**30, 1000), lambda unpacked: False)
        self.archives = Archives(config, self.directories)

    async def open(self, url: str, failure: BaseException | None = None) -> Contents:
        async with self.archives.open(Registration(url=url), no_progress) as contents:
            if failure is not None:
                raise failure
        return contents

    @property
    def unpacked(self) -> list[Path]:
        return list(self.folder.iterdir())


@pytest.mark.parametrize("failure", [Conflict("m", "1.0"), asyncio.CancelledError()], ids=["refused", "cancelled"])
async def test_a_block_that_fails_leaves_no_files(tmp_path: Path, failure: BaseException) -> None:
    opened = Opened(tmp_path)
    write_mar(opened.store / "m.mar", model_files())

    with pytest.raises(type(failure)):
        await opened.open("m.mar", failure)

    assert opened.unpacked == []


async def test_the_files_of_an_archive_stay_after_the_block_also_when_the_next_fails(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    write_mar(opened.store / "m.mar", model_files())
    write_files(opened.store, {"net.pt": b"PK"})  # beside it, which changes nothing
    first = await opened.open("m.mar")
    assert (first.directory / "handler.py").exists() and first.mark is not None

    with pytest.raises(Conflict):
        await opened.open("m.mar", Conflict("m", "1.0"))
    with pytest.raises(ArchiveNotFound):
        await opened.open("missing.mar")

    assert opened.unpacked == [first.unpacked]


async def test_unpacking_is_told_but_not_each_piece_soon_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "time", SimpleNamespace(monotonic=lambda: 7.0))
    opened, told = Opened(tmp_path), list[tuple[str, bool]]()
    write_mar(opened.store / "m.mar", model_files())

    def note(stage: str, done: int, total: int) -> None:
        told.append((stage, 0 < done < total))

    async with opened.archives.open(Registration(url="m.mar"), note):
        assert told == [("unpacking", True)]


async def test_a_directory_is_served_where_it_is(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    directory = write_files(opened.store / "m", model_files())

    contents = await opened.open("m")

    assert contents == Contents(directory)
    assert opened.unpacked == []
    with pytest.raises(Conflict):
        await opened.open("m", Conflict("m", "1.0"))
    assert (directory / "handler.py").exists()


@pytest.mark.parametrize("url", ["sentiment.py", "sentiment.py:french", "net.pt"])
async def test_a_single_file_is_served_where_it_is(url: str, tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    write_files(opened.store, {"sentiment.py": b"def french(texts): ...", "net.pt": b"PK"})

    assert await opened.open(url) == Contents(opened.store)
    assert opened.unpacked == []


class SlowRemoval:
    """Removals of directories that nothing uses wait until `go` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self._remove = shutil.rmtree
        monkeypatch.setattr(shutil, "rmtree", self.remove)

    def remove(self, directory: Path, **options: Any) -> None:
        if directory.name.startswith(opening.REMOVED):
            self.go.wait()
        self._remove(directory, **options)


async def opened_while_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Opened, SlowRemoval]:
    """Return archives of which m.mar was unpacked in vain, and the removal of its files."""
    opened, removal = Opened(folder), SlowRemoval(monkeypatch)
    write_mar(opened.store / "m.mar", model_files())
    with pytest.raises(Conflict):
        await opened.open("m.mar", Conflict("m", "1.0"))
    return opened, removal


async def test_an_archive_is_opened_while_the_files_of_another_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, removal = await opened_while_removed(tmp_path, monkeypatch)

    try:
        contents = await asyncio.wait_for(opened.open("m.mar"), 30.0)
    finally:
        removal.go.set()
    await opened.directories.removed()

    assert opened.unpacked == [contents.unpacked]


async def test_a_download_begins_when_the_disk_is_free_of_what_is_being_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, removal = await opened_while_removed(tmp_path, monkeypatch)

    asking = asyncio.create_task(opened.open("https://models.example/m.mar"))
    await asyncio.sleep(0)
    begun = asking.done()
    removal.go.set()

    with pytest.raises(ArchiveNotFound, match="not match any allowed"):
        await asking
    assert not begun


@pytest.mark.parametrize("freed", [True, False], ids=["enough is removed", "the disk stays full"])
async def test_a_disk_that_is_full_of_what_is_being_removed_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, freed: bool
) -> None:
    opened, removal = await opened_while_removed(tmp_path, monkeypatch)

    def unpacked(archive: Path, *arguments: Any) -> Path:
        full = not (removal.go.is_set() and freed)
        removal.go.set()
        if full:
            raise NotStored("m.mar", "unpacked", opened.folder, OSError(ENOSPC, "No space left on device"))
        return unpack(archive, *arguments)

    monkeypatch.setattr(opening, "unpack", unpacked)
    if freed:
        assert (await opened.open("m.mar")).directory.is_dir()
    else:
        with pytest.raises(NotStored, match="No space left"):
            await opened.open("m.mar")
