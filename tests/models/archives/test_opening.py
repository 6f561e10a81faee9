"""An opened archive stays if a model was made of it, and leaves nothing if none was."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from daemon import paths
from daemon.core.errors import ArchiveNotFound, Conflict
from daemon.models.archives.directories import Directories
from daemon.models.archives.opening import Archives, Contents
from daemon.models.archives.unpack import Limits
from daemon.models.registrar import no_progress
from daemon.models.request import Request
from tests.build import make_config, model_files, write_files, write_mar


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
        async with self.archives.open(Request(url=url), no_progress) as contents:
            if failure is not None:
                raise failure
        return contents

    @property
    def unpacked(self) -> list[Path]:
        return list(self.folder.iterdir())


def run(root: Path, scenario: Callable[[Opened], Awaitable[None]]) -> None:
    asyncio.run(_run(root, scenario))


async def _run(root: Path, scenario: Callable[[Opened], Awaitable[None]]) -> None:
    await scenario(Opened(root))


def test_the_files_of_an_archive_stay_after_the_block(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        write_mar(opened.store / "m.mar", model_files())

        contents = await opened.open("m.mar")

        assert (contents.directory / "handler.py").exists()
        assert opened.unpacked == [contents.unpacked]
        assert contents.mark is not None

    run(tmp_path, scenario)


@pytest.mark.parametrize("failure", [Conflict("m", "1.0"), asyncio.CancelledError()], ids=["refused", "cancelled"])
def test_a_block_that_fails_leaves_no_files(tmp_path: Path, failure: BaseException) -> None:
    async def scenario(opened: Opened) -> None:
        write_mar(opened.store / "m.mar", model_files())

        with pytest.raises(type(failure)):
            await opened.open("m.mar", failure)

        assert opened.unpacked == []

    run(tmp_path, scenario)


def test_a_block_that_fails_leaves_the_files_that_another_model_uses(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        write_mar(opened.store / "m.mar", model_files())
        first = await opened.open("m.mar")

        with pytest.raises(Conflict):
            await opened.open("m.mar", Conflict("m", "1.0"))

        assert opened.unpacked == [first.unpacked]

    run(tmp_path, scenario)


def test_a_directory_is_served_where_it_is(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        directory = write_files(opened.store / "m", model_files())

        contents = await opened.open("m")

        assert contents == Contents(directory)
        assert opened.unpacked == []
        with pytest.raises(Conflict):
            await opened.open("m", Conflict("m", "1.0"))
        assert (directory / "handler.py").exists()

    run(tmp_path, scenario)


def test_an_archive_that_is_missing_is_not_opened(tmp_path: Path) -> None:
    async def scenario(opened: Opened) -> None:
        with pytest.raises(ArchiveNotFound):
            await opened.open("missing.mar")

    run(tmp_path, scenario)
