"""The daemon downloads from stores of objects by a program of its own: under its rules for URLs, and never for long."""

import asyncio
import contextlib
import os
import sys
import threading
from pathlib import Path

import pytest

from tests.kit.daemon import StubDaemon
from tsctl.daemon.core.errors import ArchiveNotFound, DownloadFailed
from tsctl.daemon.models.archives.download import downloaded
from tsctl.daemon.models.archives.sources import objects
from tsctl.daemon.models.archives.sources.objects import fetch_object, is_object

READ = "import json, sys; order = json.loads(sys.stdin.readline()); "


def program(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let another program take the place of the daemon's own."""
    monkeypatch.setattr(objects, "_PROGRAM", (sys.executable, "-c", READ + text))


@pytest.mark.parametrize(
    ("url", "is_one"),
    [("s3://b/k", True), ("GS://b/k", True), ("hf://o/r/f", True), ("https://s3.example/b", False), ("s3a://b", False)],
)
def test_the_scheme_tells_a_store(url: str, is_one: bool) -> None:
    assert is_object(url) is is_one


async def test_an_object_is_downloaded_and_its_progress_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tell = 'open(order["file"], "w").write("content"); print(\'{"done": 3, "total": 7}\\n{"end": ""}\')'
    program(monkeypatch, tell)
    told: list[tuple[int, int]] = []

    async with downloaded("s3://b/a/m.mar", tmp_path, (), 1000, lambda *event: told.append(event)) as file:
        await asyncio.sleep(0)
        assert (file.name, file.read_text(), told) == ("m.mar", "content", [(3, 7)])

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param('print(\'{"end": "there is no such object"}\')', "there is no such object", id="a reason"),
        pytest.param("sys.exit(1)", "the program for it has ended", id="no word"),
    ],
)
async def test_what_failed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str) -> None:
    program(monkeypatch, text)

    with pytest.raises(DownloadFailed, match=rf"Failed to download archive from: s3://b/m\.mar \({reason}"):
        async with downloaded("s3://b/m.mar", tmp_path, (), 1000, lambda done, total: None):
            pass

    assert os.listdir(tmp_path) == []


async def test_a_download_that_is_given_up_ends_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(
        monkeypatch,
        'print(\'{"done": 0, "total": 1}\', flush=True); sys.stdin.read(); import time; time.sleep(999)',
    )
    begun = asyncio.Event()
    download = downloaded("s3://b/m.mar", tmp_path, (), 1000, lambda done, total: begun.set())
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
        fetch_object("s3://b/m.mar", tmp_path / "m.mar", 1000, lambda done, total: None, lambda: False)


async def test_only_urls_that_the_operator_allows_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(monkeypatch, f'open({str(tmp_path / "started")!r}, "w"); print(\'{{"end": "no"}}\')')
    bench = StubDaemon(tmp_path, allowed_urls="s3://models/.*")

    for url in ("s3://others/m.mar", "gs://models/m.mar", "s3://models/../others/m.mar"):
        with pytest.raises(ArchiveNotFound):
            await bench.register(url)
    assert not (tmp_path / "started").exists()
    with pytest.raises(DownloadFailed):
        await bench.register("s3://models/m.mar")
    assert (tmp_path / "started").exists()
