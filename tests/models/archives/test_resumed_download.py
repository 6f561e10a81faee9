"""A download over HTTP goes on after a cut, where the server marks the file's content and serves ranges of it."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.kit.web import web_server
from tsctl.daemon.core.errors import DownloadFailed
from tsctl.daemon.models.archives.web import ATTEMPTS, LOSSES, fetch

OLD, NEW = bytes(range(200)), bytes(reversed(range(200)))


class CuttingServer:
    """A server of one file, some of whose answers end early.

    Attributes:
        content: of the file; its `tag` is the ETag, empty for none.
        ranges: whether the server knows ranges.
        conditions: whether it heeds `If-Range`.
        shift: of each part, in bytes.
        lengths: of the content that the next answers send before the connection breaks.
        asked: `Range` and `If-Range` of each request.
        after: called after each answer.
    """

    def __init__(self) -> None:
        self.content, self.tag, self.ranges, self.conditions, self.shift = OLD, '"old"', True, True, 0
        self.lengths: list[int] = []
        self.asked: list[tuple[str | None, str | None]] = []
        self.after: Any = lambda: None
        self.url = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        span, condition = handler.headers.get("Range"), handler.headers.get("If-Range")
        self.asked.append((span, condition))
        first = 0
        if span and self.ranges and (condition == self.tag or not self.conditions):
            first = int(span.removeprefix("bytes=").rstrip("-")) + self.shift
        part = self.content[first:]
        handler.send_response(206 if first else 200)
        if first:
            handler.send_header("Content-Range", f"bytes {first}-{len(self.content) - 1}/{len(self.content)}")
        if self.tag:
            handler.send_header("ETag", self.tag)
        handler.send_header("Content-Length", str(len(part)))
        handler.end_headers()
        handler.wfile.write(part[: self.lengths.pop(0) if self.lengths else None])
        self.after()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[CuttingServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    cutting = CuttingServer()
    with web_server(cutting.answer) as url:
        cutting.url = f"{url}/m.mar"
        yield cutting


def download(server: CuttingServer, folder: Path, pauses: list[float] | None = None) -> bytes:
    sleep = (lambda seconds: None) if pauses is None else pauses.append
    fetch(
        server.url, folder / "m.mar", lambda done, total: None, lambda: False, allowed=(".*",), limit=1000, sleep=sleep
    )
    return (folder / "m.mar").read_bytes()


@pytest.mark.parametrize(
    ("ranges", "lengths", "asked", "paused"),
    [
        pytest.param(True, [50, 30], [None, "bytes=50-", "bytes=80-"], [0.5, 0.5], id="each attempt brings bytes"),
        pytest.param(False, [50], [None, "bytes=50-"], [0.5], id="without ranges the whole file comes again"),
        pytest.param(True, [50] + [0] * 99, [None, *["bytes=50-"] * (ATTEMPTS - 1)], [0.5, 1.0, 2.0, 4.0], id="few"),
    ],
)
def test_the_rest_is_asked_for_after_each_cut(
    server: CuttingServer,
    tmp_path: Path,
    ranges: bool,
    lengths: list[int],
    asked: list[str | None],
    paused: list[float],
) -> None:
    server.ranges, server.lengths = ranges, [*lengths]
    pauses: list[float] = []

    if len(lengths) > 9:
        with pytest.raises(DownloadFailed, match="the download ended after 50 of 200 bytes"):
            download(server, tmp_path, pauses)
    else:
        assert download(server, tmp_path, pauses) == OLD
    assert server.asked == [(span, span and '"old"') for span in asked]
    assert pauses == paused


@pytest.mark.parametrize("conditions", [True, False], ids=["heeded", "unknown"])
def test_a_file_that_was_replaced_meanwhile_is_downloaded_from_its_beginning(
    server: CuttingServer, tmp_path: Path, conditions: bool
) -> None:
    server.lengths, server.conditions = [50], conditions

    def replace() -> None:
        server.content, server.tag = NEW, '"new"'

    server.after = replace

    assert download(server, tmp_path) == NEW


@pytest.mark.parametrize(
    ("conditions", "ranges", "changes", "why"),
    [
        pytest.param(True, True, True, "another file: its ETag or Last-Modified has changed", id="another file"),
        pytest.param(False, True, True, "another file: its ETag or Last-Modified has changed", id="a part of one"),
        pytest.param(True, False, False, "all of it anew, or another part", id="no ranges"),
    ],
)
def test_a_server_that_cuts_each_answer_and_never_goes_on_with_it_is_left(
    server: CuttingServer, tmp_path: Path, conditions: bool, ranges: bool, changes: bool, why: str
) -> None:
    server.conditions, server.ranges = conditions, ranges
    server.lengths = list(range(50, 150))  # each answer brings more bytes than the one before

    def replace() -> None:
        server.tag = f'"{len(server.asked) if changes else 0}"'

    replace()
    server.after = replace

    with pytest.raises(DownloadFailed, match=f"the server cut {LOSSES} answers, and sent no rest but {why}"):
        download(server, tmp_path)
    assert len(server.asked) <= 2 * LOSSES + 1


def test_a_line_that_cuts_most_answers_of_a_server_without_ranges_does_not_end_the_download(
    server: CuttingServer, tmp_path: Path
) -> None:
    server.ranges, server.lengths = False, [150, 20, 90, 10, 120, 60, 5, 199]

    assert download(server, tmp_path) == OLD


def test_another_part_than_was_asked_for_is_not_taken(server: CuttingServer, tmp_path: Path) -> None:
    server.lengths, server.shift = [50], -10

    assert download(server, tmp_path) == OLD
    assert [span for span, _ in server.asked] == [None, "bytes=50-", None]


@pytest.mark.parametrize("tag", ["", 'W/"weak"'])
def test_without_a_mark_of_the_content_a_cut_ends_the_download(server: CuttingServer, tmp_path: Path, tag: str) -> None:
    server.tag, server.lengths = tag, [50]

    with pytest.raises(DownloadFailed, match="the download ended after 50 of 200 bytes"):
        download(server, tmp_path)
