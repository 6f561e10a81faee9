"""The daemon downloads from stores of objects by a program of its own: under its rules for URLs, and never for long."""

import asyncio
import contextlib
import os
import shutil
import sys
import threading
from contextlib import AbstractAsyncContextManager
from errno import EDQUOT, ENOSPC
from pathlib import Path

import pytest

from tests.kit.archives import write_files
from tests.kit.daemon import StubDaemon
from tsctl.daemon import paths
from tsctl.daemon.core.errors import ArchiveNotFound, DownloadFailed, NotStored
from tsctl.daemon.extensions.object_stores import ObjectStoresExtension, objects
from tsctl.daemon.extensions.object_stores.objects import ObjectStores, fetch_object
from tsctl.daemon.models.archives.download import archive_of
from tsctl.daemon.models.archives.web import Progress
from tsctl.daemon.targets import TargetError, read_target

READ = "import json, sys; order = json.loads(sys.stdin.readline()); "


def program(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let another program take the place of the daemon's own."""
    monkeypatch.setattr(objects, "_PROGRAM", (sys.executable, "-c", READ + text))


class Stores(StubDaemon):
    """A registration that downloads from stores of objects, where all URLs are allowed."""

    def __init__(self, root: Path, allowed_urls: str = ".*") -> None:
        super().__init__(root, allowed_urls=allowed_urls)
        ObjectStores(self.config, self.registrar.archives, ObjectStoresExtension.schemes)
        self.downloads = paths.downloads_dir(self.config.state_dir)

    def archive(self, url: str, progress: Progress = lambda done, total: None) -> AbstractAsyncContextManager[Path]:
        return archive_of(url, self.config, self.registrar.archives.fetchers, progress, local_paths=False)


async def test_an_object_is_downloaded_and_its_progress_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tell = 'open(order["file"], "w").write("content"); print(\'{"done": 3, "total": 7}\\n{"end": ""}\')'
    program(monkeypatch, tell)
    told: list[tuple[int, int]] = []

    async with (stores := Stores(tmp_path)).archive("s3://b/a/m.mar", lambda *event: told.append(event)) as file:
        await asyncio.sleep(0)
        assert (file.name, file.read_text(), told) == ("m.mar", "content", [(3, 7)])

    assert os.listdir(stores.downloads) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param('print(\'{"end": "there is no such object"}\')', "there is no such object", id="a reason"),
        pytest.param("sys.exit(1)", "the program for it has ended", id="no word"),
    ],
)
async def test_what_failed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str) -> None:
    program(monkeypatch, text)

    stores = Stores(tmp_path)
    with pytest.raises(DownloadFailed, match=rf"Failed to download archive from: s3://b/m\.mar \({reason}"):
        async with stores.archive("s3://b/m.mar"):
            pass

    assert os.listdir(stores.downloads) == []


@pytest.mark.parametrize(
    ("number", "reason"), [(ENOSPC, "No space left on device"), (EDQUOT, "Disk quota exceeded")], ids=["disk", "quota"]
)
async def test_a_full_disk_is_no_fault_of_the_store_and_told_from_a_full_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str
) -> None:
    program(monkeypatch, f'print(\'{{"end": "OSError: no room", "full": {number}}}\')')

    with pytest.raises(NotStored, match=rf"`s3://b/m\.mar` cannot be downloaded into `.*`: {reason}\."):
        async with Stores(tmp_path).archive("s3://b/m.mar"):
            pass


async def test_a_download_that_is_given_up_ends_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(
        monkeypatch,
        'print(\'{"done": 0, "total": 1}\', flush=True); sys.stdin.read(); import time; time.sleep(999)',
    )
    begun = asyncio.Event()
    download = Stores(tmp_path).archive("s3://b/m.mar", lambda done, total: begun.set())
    task = asyncio.create_task(contextlib.AsyncExitStack().enter_async_context(download))
    await begun.wait()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for thread in threading.enumerate():
        if thread.name == "download":
            thread.join(10)

    assert not [each for each in threading.enumerate() if each.name == "download"]


def test_a_silent_program_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(monkeypatch, "sys.stdin.read(); import time; time.sleep(999)")
    monkeypatch.setattr(objects, "SILENCE", 0.0)

    with pytest.raises(DownloadFailed, match="takes too long"):
        fetch_object(
            "s3://b/m.mar", tmp_path / "m.mar", 1000, lambda done, total: None, lambda: False, tmp_path / "tag"
        )


async def test_only_urls_that_the_operator_allows_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(monkeypatch, f'open({str(tmp_path / "started")!r}, "w"); print(\'{{"end": "no"}}\')')
    stores = Stores(tmp_path, "s3://models/.*")

    for url in ("s3://others/m.mar", "gs://models/m.mar", "s3://models/../others/m.mar"):
        with pytest.raises(ArchiveNotFound):
            await stores.register(url)
    assert not (tmp_path / "started").exists()
    with pytest.raises(DownloadFailed):
        await stores.register("s3://models/m.mar")
    assert (tmp_path / "started").exists()


async def test_a_model_whose_files_are_gone_is_downloaded_again_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = Stores(tmp_path)
    archive = stores.store / stores.mar()
    program(monkeypatch, f"import shutil; shutil.copy({str(archive)!r}, order['file']); print('{{\"end\": \"\"}}')")
    await stores.register("s3://b/m.mar")
    (unpacked,) = stores.models_dir.iterdir()
    shutil.rmtree(unpacked)

    later = await stores.restart()

    assert later.names == ["m/1.0"] and unpacked.is_dir()


async def test_a_start_keeps_parts_and_removes_what_else_downloads_have_left(tmp_path: Path) -> None:
    downloads = Stores(tmp_path).downloads
    write_files(downloads / "archive-x1", {"m.mar": b"half"})
    write_files(downloads / "unfinished-1-x2", {"data": b"half", "tag": b"a"})

    Stores(tmp_path)

    assert os.listdir(downloads) == ["part-1"]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("s3://b/k", "no"), ("GS://b/k", "no"), ("hf://o/r/f", "no"), ("s3a://b", "unknown url type: s3a"),
        ("http://s3:x/b", "nonnumeric port"),
    ],
)  # fmt: skip
async def test_the_scheme_tells_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, reason: str) -> None:
    program(monkeypatch, 'print(\'{"end": "no"}\')')

    with pytest.raises(DownloadFailed, match=rf"from: {url} \(.*{reason}"):
        await Stores(tmp_path).register(url)


def test_the_command_line_takes_urls_of_stores_and_names_them() -> None:
    assert read_target("S3://b/m.mar", Path()).url == "S3://b/m.mar"
    with pytest.raises(TargetError) as caught:
        read_target("ftp://h/m.mar", Path())

    assert caught.value.message == "`ftp://h/m.mar` has a scheme that is not served"
    assert caught.value.hint is not None and "http://, https://, s3://, gs://, hf://" in caught.value.hint
