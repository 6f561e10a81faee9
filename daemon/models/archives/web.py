"""Download an archive over HTTP or HTTPS; after a cut, the rest is asked for.

answer ends early ──▶ did the server tell an ETag or a date? ──yes──▶ ask for `Range: bytes=DONE-`, with `If-Range`
                                 │ no                                   206: the rest comes, if it has the same mark
                                 ▼                                      200: another file, or no ranges: begin anew
                             it failed                                  206 of another file, or another part: again

Bytes that were begun anew are no progress: a download that loses what it has `LOSSES` times has failed, too.
"""

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from tsctl.daemon.core.errors import ArchiveNotFound, DownloadFailed

MOST_URL = 8192  # characters
MOST_DECODINGS = 4  # of a URL's escapes; no honest URL is encoded more often


def check_url(url: str, allowed: Sequence[str]) -> None:
    """Refuse a URL that no pattern matches as a whole, case-insensitively.

    A server may decode the escapes once or more often: the raw URL has to match, and so does each decoding, until
    nothing changes.

    Raises:
        ArchiveNotFound: the URL does not match, is too long, is encoded too often, or holds `..`, a space, a backslash
            or an unprintable character, which servers may read differently.
    """
    if len(url) > MOST_URL:
        raise ArchiveNotFound(f"Given URL {url[:100]}… has {len(url)} characters, at most {MOST_URL} are read")
    forms = _decodings(url)
    if any(".." in re.split(r"[/\\]", form) for form in forms):
        raise ArchiveNotFound(f"Relative path is not allowed in url: {url}")
    refused = f"Given URL {url} does not match any allowed URL(s)"
    if not _plain(url):
        raise ArchiveNotFound(f"{refused}: programs read it differently; encode spaces, backslashes and so on")
    for form in forms:
        if not any(re.fullmatch(pattern, form, re.IGNORECASE) for pattern in allowed):
            decoded = "" if form == url else f"it may be read as {form!r}, and "
            raise ArchiveNotFound(f"{refused}: {decoded}the daemon's `--allowed-urls` has no pattern for it")


def _decodings(url: str) -> list[str]:
    """Return the raw URL, and the URL after each decoding of its escapes, until nothing changes.

    Raises:
        ArchiveNotFound: the URL is encoded more than `MOST_DECODINGS` times.
    """
    forms = [url]
    while (decoded := unquote(forms[-1])) != forms[-1]:
        if len(forms) > MOST_DECODINGS:
            raise ArchiveNotFound(f"Given URL {url[:100]} is percent-encoded more than {MOST_DECODINGS} times")
        forms.append(decoded)
    return forms


def _plain(url: str) -> bool:
    """Return whether every parser reads the URL alike: urllib drops or repairs some characters."""
    try:
        urlsplit(url)
    except ValueError:
        return False
    return url.isprintable() and " " not in url and "\\" not in url


SILENCE = 60.0  # seconds that a server may send nothing
ATTEMPTS = 5  # in a row that bring no byte
LOSSES = 20  # of all that was there; without ranges, and if 4 of 5 answers are cut, 99 of 100 downloads come to an end
FIRST_PAUSE = 0.5  # seconds before the second attempt; doubles
_CHUNK = 1024 * 1024

Progress = Callable[[int, int], None]  # bytes done, bytes in all (0 if the server sends no length)


def fetch(
    url: str,
    file: Path,
    progress: Progress,
    stopped: Callable[[], bool],
    *,
    allowed: Sequence[str],
    limit: int,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Download into a new file. Blocks: for a thread.

    Args:
        allowed: patterns of URLs, of which a redirection must match one.
        limit: the largest size of the archive, in bytes.
        stopped: called before each chunk; when true, the download ends and the file is left incomplete.

    Raises:
        DownloadFailed: the server failed, a redirection is not allowed, or the download is too large, or incomplete.
        OSError: the disk failed.
    """
    with file.open("xb") as written:
        download = _Download(url, written, _opener(allowed), limit, progress, stopped)
        try:
            download.download(sleep)
        except (OSError, HTTPException, ValueError) as error:  # URLError and HTTPError are OSErrors
            if download.disk_failed:
                raise
            raise DownloadFailed(url, _in_words(error)) from None


class _Download:
    """A download, over one answer or several.

    Attributes:
        done, total: bytes that were written, and in all; 0 if the server sends no length.
        losses: how often what was there was no beginning of what the server sent then.
        validator: the server's mark of the file's content, for `If-Range`; empty if it sends none.
        disk_failed: bytes could not be written.
    """

    def __init__(
        self,
        url: str,
        written: IO[bytes],
        opener: OpenerDirector,
        limit: int,
        progress: Progress,
        stopped: Callable[[], bool],
    ) -> None:
        self._url = url
        self._written = written
        self._opener = opener
        self._limit = limit
        self._progress = progress
        self._stopped = stopped
        self.done = self.total = self.losses = 0
        self.validator = ""
        self.disk_failed = False

    def download(self, sleep: Callable[[float], None]) -> None:
        """Download, and ask again after a cut, until the file is whole.

        Raises:
            DownloadFailed: as `fetch`.
            OSError: the server cannot be reached, or the disk failed.
            HTTPException: the answer is no HTTP.
        """
        failures = 0
        while True:
            before, problem = self.done, None
            try:
                with self._answer() as answer:
                    self._take(answer)
            except HTTPError:
                raise
            except (OSError, HTTPException) as error:
                if self.disk_failed:  # no other answer helps
                    raise
                problem = error
            if self._stopped() or (problem is None and self.done >= self.total):
                return
            failures = 1 if self.done > before else failures + 1
            if not self.validator or failures >= ATTEMPTS:
                if problem is not None:
                    raise problem
                raise DownloadFailed(self._url, f"the download ended after {self.done} of {self.total} bytes")
            sleep(FIRST_PAUSE * 2 ** (failures - 1))

    @contextlib.contextmanager
    def _answer(self) -> Iterator[Any]:
        """Ask for the rest of the file; where the server sends all of it, begin anew."""
        headers = {"User-Agent": "tsctl"}
        if self.done:
            headers |= {"Range": f"bytes={self.done}-", "If-Range": self.validator}
        with self._opener.open(Request(self._url, headers=headers), timeout=SILENCE) as answer:
            length, mark = int(answer.headers.get("Content-Length") or 0), _validator(answer.headers)
            rest = self.done > 0 and answer.status == 206
            if rest and _first_byte(answer.headers) == self.done and mark in ("", self.validator):
                self.total = self.done + length
            else:
                if self.done:
                    self._lose(mark)
                if rest:
                    raise HTTPException("the server sent another part than it was asked for, or one of another file")
                self._written.seek(0)
                self._written.truncate()
                self.total, self.validator = length, mark
            yield answer

    def _lose(self, mark: str) -> None:
        """Begin anew, as the answer is not the rest of the file; raise DownloadFailed if that came too often."""
        self.done, self.losses = 0, self.losses + 1
        if self.losses >= LOSSES:
            same = mark == self.validator
            sent = "all of it anew, or another part" if same else "another file: its ETag or Last-Modified has changed"
            raise DownloadFailed(self._url, f"the server cut {self.losses} answers, and sent no rest but {sent}")

    def _take(self, answer: Any) -> None:
        while not self._stopped():
            if max(self.done, self.total) > self._limit:
                reason = f"the archive is larger than the {self._limit} bytes of `archive_bytes`"
                raise DownloadFailed(self._url, reason)
            piece = answer.read1(_CHUNK)
            if not piece:
                return
            self._write(piece)
            self.done += len(piece)
            self._progress(self.done, self.total)

    def _write(self, piece: bytes) -> None:
        try:
            self._written.write(piece)
            self._written.flush()  # else an error could come later, among those of the server
        except OSError:
            self.disk_failed = True
            raise


def _validator(headers: HTTPMessage) -> str:
    """Return the value of `If-Range`: a strong ETag, or a date; empty for neither (RFC 9110, section 13.1.5)."""
    tag = headers.get("ETag") or ""
    return tag if tag.startswith('"') else headers.get("Last-Modified") or ""


def _first_byte(headers: HTTPMessage) -> int:
    """Return where the part of a file begins that an answer holds; -1 if it does not tell."""
    unit, _, rest = (headers.get("Content-Range") or "").partition(" ")
    first = rest.partition("-")[0]
    return int(first) if unit == "bytes" and first.isdecimal() else -1


def _in_words(error: Exception) -> str:
    if isinstance(error, HTTPError):
        error.close()
        return f"the server answered {error.code} {error.reason}"
    return str(getattr(error, "reason", None) or error) or type(error).__name__


class _Redirects(HTTPRedirectHandler):
    """Follows a redirection only to an allowed URL."""

    max_redirections = 5

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = allowed

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        fp.close()  # else urllib reads the redirection's own body, whatever its size, into memory
        try:
            check_url(newurl, self._allowed)
        except ArchiveNotFound as error:
            raise DownloadFailed(req.full_url, f"the redirection is not allowed. {error}") from None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener(allowed: Sequence[str]) -> OpenerDirector:
    """Return an opener for HTTP and HTTPS only: urllib's own would open ftp:// and data:, too."""
    opener = OpenerDirector()
    for handler in (
        ProxyHandler(), HTTPHandler(), HTTPSHandler(), HTTPDefaultErrorHandler(), HTTPErrorProcessor(),
        UnknownHandler(), _Redirects(allowed),
    ):  # fmt: skip
        opener.add_handler(handler)
    return opener
