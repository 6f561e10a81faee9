"""Archives come from elsewhere only as far as the operator allows, and leave nothing behind."""

import asyncio
import contextlib
import io
import json
import os
import socket
import threading
from collections.abc import Iterator
from errno import ENOSPC
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.kit.said import said_in
from tests.models.archives.web import Web, serving_web
from tsctl.daemon.core.errors import ArchiveNotFound, DownloadFailed, NotStored
from tsctl.daemon.models.archives import download
from tsctl.daemon.models.archives.download import Fetch, downloaded, local_path
from tsctl.daemon.models.archives.web import check_url
from tsctl.daemon.models.archives.web import fetch as fetch_by_http
from tsctl.daemon.targets import is_url


class FullFile(io.BytesIO):
    """A file on a full disk, which is known once what was written leaves the buffer."""

    def flush(self) -> None:
        raise OSError(ENOSPC, os.strerror(ENOSPC))


ALLOWED = ("https://models\\.example\\.com/.*", "file:///srv/models/.*")
ANY = (".*",)


@pytest.fixture(scope="module")
def server() -> Iterator[Web]:
    with serving_web() as web:
        yield web


@pytest.fixture
def web(server: Web, monkeypatch: pytest.MonkeyPatch) -> Web:
    """The server, with nothing on it, and asked without the proxy that the environment may name."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for table in (server.files, server.redirects, server.claims, server.tags, server.asked):
        table.clear()
    return server


def by_http(allowed: str = ".*", limit: int = 1000) -> Fetch:
    return partial(fetch_by_http, allowed=(allowed,), limit=limit)


def fetch(web: Web, path: str, folder: Path, *, allowed: str = ".*", limit: int = 1000) -> bytes:
    """Download, look at the file, and leave."""

    async def main() -> bytes:
        async with downloaded(web.url + path, folder, by_http(allowed, limit), lambda done, total: None) as file:
            return file.read_bytes()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("url", "remote"),
    [("https://a/m.mar", True), ("FILE:///m.mar", True), ("s3://a/m.mar", True), ("m.mar", False), ("/m.mar", False)],
)
def test_what_has_a_scheme_is_remote(url: str, remote: bool) -> None:
    assert is_url(url) is remote


@said_in("urls.txt")
def test_a_url_is_allowed_that_matches_as_a_whole_however_it_is_read(given: str) -> str:
    url, allowed = json.loads(given)
    url = url.replace("MANY25", "25" * 3000).replace("LONG", "x" * 8973)
    try:
        check_url(url, {"ALLOWED": ALLOWED, "ANY": ANY, "NONE": ()}[allowed])
    except ArchiveNotFound as error:
        return json.dumps(str(error), ensure_ascii=False)
    return "allowed"


def encode(text: str, chosen: list[bool], times: int) -> str:
    """Percent-encode those characters, so many times."""
    once = "".join(f"%{ord(each):02x}" if odd else each for each, odd in zip(text, chosen, strict=False))
    once += text[len(chosen) :]
    for _ in range(times - 1):
        once = once.replace("%", "%25")
    return once


@given(
    path=st.sampled_from(
        ["../secret/m.mar", "a/../../secret/m.mar", "secret/m.mar", "a/secret/m.mar", "secret%2fm.mar"]
    ),
    chosen=st.lists(st.booleans(), max_size=20),
    times=st.integers(1, 8),
    scheme=st.sampled_from(["https://models.example.com", "file:///srv/models"]),
)
@example(path="../secret/m.mar", chosen=[True] * 3, times=2, scheme="file:///srv/models")
@example(path="secret/m.mar", chosen=[True], times=1, scheme="https://models.example.com")
def test_no_number_of_escapes_leads_past_the_patterns(path: str, chosen: list[bool], times: int, scheme: str) -> None:
    patterns = ("https://models.example.com/(?!(.*/)?secret).*", "file:///srv/models/(?!(.*/)?secret).*")

    with pytest.raises(ArchiveNotFound):
        check_url(f"{scheme}/{encode(path, chosen, times)}", patterns)


@pytest.mark.parametrize("host", ["", "localhost"])
def test_a_file_url_names_a_path(tmp_path: Path, host: str) -> None:
    (tmp_path / "a b.mar").touch()

    assert local_path(f"file://{host}{tmp_path}/a%20b.mar") == tmp_path / "a b.mar"
    assert local_path("https://a/m.mar") is None


@pytest.mark.parametrize("url", ["file:///missing.mar", "file://elsewhere/", "file:///a%00b", "file:///" + "x" * 5000])
def test_a_file_url_of_nothing_is_not_found(url: str) -> None:
    with pytest.raises(ArchiveNotFound) as caught:
        local_path(url)

    assert str(caught.value) == f"Model not found at: {url}"


async def test_an_archive_is_downloaded_under_its_name_with_progress_and_then_removed(web: Web, tmp_path: Path) -> None:
    web.files["/models/my%20m.mar?token=1"] = b"content"
    folder = tmp_path / "downloads"
    url = f"{web.url}/models/my%20m.mar?token=1"
    told: list[tuple[int, int]] = []

    async with downloaded(url, folder, by_http(), lambda *event: told.append(event)) as file:
        await asyncio.sleep(0)
        assert (file.name, file.read_bytes(), told[0]) == ("my m.mar", b"content", (7, 7))

    assert list(folder.iterdir()) == []


async def test_of_a_name_that_the_disk_does_not_take_the_end_is_kept(tmp_path: Path) -> None:
    url = f"https://a/{'%E6%9C%AC' * 99}\ud800%00.tar.gz"

    async with downloaded(url, tmp_path, lambda _url, file, *_: file.touch(), lambda *_: None) as file:
        assert file.exists() and file.name == f"{'本' * 64}.tar.gz"


def test_a_redirection_is_followed_unread_where_it_is_allowed_but_not_in_a_circle(web: Web, tmp_path: Path) -> None:
    web.redirects |= {"/a/m.mar": "/b/m.mar", "/m.mar": "/m.mar"}
    web.claims["/a/m.mar"] = 10**15  # bytes of the redirection itself
    web.files["/b/m.mar"] = b"x" * 1000  # of just the limit

    assert fetch(web, "/a/m.mar", tmp_path, allowed="http://127.0.0.1.*") == b"x" * 1000
    with pytest.raises(DownloadFailed):
        fetch(web, "/m.mar", tmp_path)


@pytest.mark.parametrize("target", ["/b/m.mar", "ftp://127.0.0.1/m.mar", "file:///etc/passwd", "http://10.0.0.1/m.mar"])
def test_a_redirection_to_what_is_not_allowed_is_not_followed(web: Web, tmp_path: Path, target: str) -> None:
    web.redirects["/a/m.mar"] = target
    web.files["/b/m.mar"] = b"secret"

    with pytest.raises(DownloadFailed, match=f"Failed to download archive from: {web.url}/a/m.mar"):
        fetch(web, "/a/m.mar", tmp_path, allowed="http://127.0.0.1:[0-9]+/a/.*")

    assert web.asked == ["/a/m.mar"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "claim", "reason"),
    [
        pytest.param(b"x" * 50, 1001, "the archive is larger than the 1000 bytes", id="says that it is too large"),
        pytest.param(b"x" * 1001, None, "the archive is larger than the 1000 bytes", id="is too large"),
        pytest.param(b"x" * 50, 51, "the download ended after 50 of 51 bytes", id="is cut short"),
        pytest.param(None, None, r"archive from: {}/m.mar \(the server answered 404 Not Found\)$", id="is missing"),
    ],
)
def test_an_archive_is_refused_that(
    web: Web, tmp_path: Path, content: bytes | None, claim: int | None, reason: str
) -> None:
    if content is not None:
        web.files["/m.mar"], web.claims["/m.mar"] = content, claim

    with pytest.raises(DownloadFailed, match=reason.format(web.url)) as caught:
        fetch(web, "/m.mar", tmp_path)

    assert caught.value.status == 400
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "reason"), [("file/downloads", "Not a directory"), ("full", "No space left on device")]
)
def test_what_this_machine_cannot_store_is_no_fault_of_the_server_which_is_not_asked_again(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, reason: str
) -> None:
    (tmp_path / "file").touch()
    web.files["/m.mar"], web.tags["/m.mar"] = b"x" * 50, '"1"'
    if place == "full":
        monkeypatch.setattr(Path, "open", lambda path, mode: FullFile())

    with pytest.raises(
        NotStored, match=f"`{web.url}/m.mar` cannot be downloaded into `.*/{place}`: {reason}."
    ) as caught:
        fetch(web, "/m.mar", tmp_path / place)

    assert caught.value.status == 507
    assert len(web.asked) == (place == "full")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        pytest.param("http://127.0.0.1:1/m.mar", "Connection refused", id="nobody listens"),
        pytest.param("gopher://a/m.mar", "unknown url type: gopher", id="a scheme nobody speaks"),
        pytest.param("http:///m.mar", "no host given", id="no host"),
    ],
)
async def test_what_cannot_be_reached_is_told(web: Web, tmp_path: Path, url: str, reason: str) -> None:
    with pytest.raises(DownloadFailed, match=rf"Failed to download archive from: {url} \(.*{reason}\)"):
        async with downloaded(url, tmp_path, by_http(), lambda done, total: None):
            pass


def until(ended: threading.Event) -> None:
    ended.wait()


async def test_a_download_may_not_take_forever_whatever_holds_it_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "LONGEST", 0.001)
    ended = threading.Event()

    with pytest.raises(DownloadFailed, match=r"from: https://a/m\.mar \(the download took longer than 0\.001 s\)"):
        async with downloaded("https://a/m.mar", tmp_path, lambda *_: until(ended), lambda *_: None):
            pass

    ended.set()
    assert os.listdir(tmp_path) == []


async def test_a_download_that_is_given_up_holds_nobody_and_leaves_nothing(tmp_path: Path) -> None:
    before = {*threading.enumerate()}  # some of which may end meanwhile
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/m.mar"
        download = downloaded(url, tmp_path, by_http(), lambda done, total: None)
        task = asyncio.create_task(contextlib.AsyncExitStack().enter_async_context(download))
        connection, _ = await asyncio.get_running_loop().sock_accept(silent)

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert os.listdir(tmp_path) == []
        connection.close()  # after which the thread ends
    for thread in threading.enumerate():
        if thread.name == "download":
            thread.join(10)

    assert {*threading.enumerate()} <= before
