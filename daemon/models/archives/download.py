"""Archives from URLs that the operator allows, up to a limit of bytes.

https:// http://    downloaded to a temporary file, which is removed when the context closes
file://             a path of this machine, once the URL is allowed
"""

import asyncio
import contextlib
import re
import shutil
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from http.client import HTTPException, HTTPMessage
from pathlib import Path, PurePosixPath
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

from daemon import paths
from daemon.config.config import Config
from daemon.core.errors import ArchiveNotFound, DownloadFailed
from daemon.models.archives.store import locate

SILENCE = 60.0  # seconds that a server may send nothing
LONGEST = 3600.0  # seconds that a download may take
MOST_URL = 8192  # characters
MOST_DECODINGS = 4  # of a URL's escapes; no honest URL is encoded more often
_CHUNK = 1024 * 1024
_PROGRESS_EVERY = 0.05  # seconds
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")

Progress = Callable[[int, int], None]  # bytes done, bytes in all (0 if the server sends no length)


def is_remote(url: str) -> bool:
    return _REMOTE.match(url) is not None


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
    if not _plain(url):
        raise ArchiveNotFound(f"Given URL {url} does not match any allowed URL(s)")
    for form in forms:
        if not any(re.fullmatch(pattern, form, re.IGNORECASE) for pattern in allowed):
            decoded = "" if form == url else f": it may be read as {form!r}"
            raise ArchiveNotFound(f"Given URL {url} does not match any allowed URL(s){decoded}")


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


def local_path(url: str) -> Path | None:
    """Return the path that an allowed `file://` URL names; None for a URL of another scheme.

    Raises:
        ArchiveNotFound: there is no such file or directory, or the URL names another machine.
    """
    parts = urlsplit(url)
    if parts.scheme.lower() != "file":
        return None
    path = Path(unquote(parts.path))
    try:
        found = parts.netloc.lower() in ("", "localhost") and (path.is_file() or path.is_dir())
    except (OSError, ValueError):  # a name too long, or with a zero byte
        found = False
    if not found:
        raise ArchiveNotFound(f"Model not found at: {url}")
    return path


@contextlib.asynccontextmanager
async def archive_of(url: str, config: Config, progress: Progress, *, local_paths: bool) -> AsyncIterator[Path]:
    """Find or download the archive that a registration names; the file exists while the context is open.

    Args:
        url: a name in the model store, an absolute path, or a URL.
        progress: called during a download, on the event loop.
        local_paths: whether a path outside the store is allowed.

    Raises:
        ArchiveNotFound: there is no such archive, or its path or URL is not allowed.
        DownloadFailed: the download failed, or passed a limit.
    """
    allowed = config.allowed_urls or ()
    if not is_remote(url):
        yield locate(url, config.model_store, local_paths=local_paths)
        return
    check_url(url, allowed)
    path = local_path(url)
    if path is not None:
        yield path
        return
    folder = paths.downloads_dir(config.state_dir)
    async with downloaded(url, folder, allowed, config.archive_bytes, progress) as file:
        yield file


@contextlib.asynccontextmanager
async def downloaded(
    url: str, folder: Path, allowed: Sequence[str], limit: int, progress: Progress
) -> AsyncIterator[Path]:
    """Download an archive into `folder`, where the file exists while the context is open.

    Args:
        url: one that passed `check_url`.
        limit: the largest size of the archive, in bytes.
        progress: called on the event loop.

    Raises:
        DownloadFailed: the download failed, passed a limit, or cannot be stored.
    """
    stopped = threading.Event()
    try:
        place = _make_place(folder)
    except OSError as error:
        raise DownloadFailed(url, f"cannot write to `{folder}`: {error.strerror}") from None
    file = place / (PurePosixPath(unquote(urlsplit(url).path)).name[:200] or "archive")
    try:
        await _in_thread(lambda report: fetch(url, file, allowed, limit, report, stopped.is_set), progress)
        yield file
    finally:
        stopped.set()
        shutil.rmtree(place, ignore_errors=True)


def _make_place(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="archive-", dir=folder))


async def _in_thread(work: Callable[[Progress], None], progress: Progress) -> None:
    """Run `work` in its own thread, which may hang: the stopping daemon waits for the executor's threads."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    reported = 0.0

    def report(count: int, total: int) -> None:
        nonlocal reported
        if time.monotonic() - reported >= _PROGRESS_EVERY:
            reported = time.monotonic()
            tell(progress, count, total)

    def tell(call: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the daemon has stopped
            loop.call_soon_threadsafe(call, *arguments)

    def end(error: Exception | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        try:
            work(report)
        except Exception as error:  # noqa: BLE001 - raised where `done` is awaited
            tell(end, error)
        else:
            tell(end, None)

    threading.Thread(target=run, name="download", daemon=True).start()
    await done


def fetch(
    url: str, file: Path, allowed: Sequence[str], limit: int, progress: Progress, stopped: Callable[[], bool]
) -> None:
    """Download into a file. Blocks; run it in a thread.

    Args:
        limit: the largest size of the archive, in bytes.
        stopped: called before each chunk; when true, the download ends and the file is left incomplete.

    Raises:
        DownloadFailed: the server or the disk failed, a redirection is not allowed, or the download is too large,
            too slow, or incomplete.
    """
    deadline = time.monotonic() + LONGEST
    try:
        with _opener(allowed).open(Request(url, headers={"User-Agent": "tsctl"}), timeout=SILENCE) as answer:
            total = int(answer.headers.get("Content-Length") or 0)
            done = 0
            with file.open("xb") as written:
                while not stopped():
                    if max(done, total) > limit:
                        raise DownloadFailed(url, f"the archive is larger than the {limit} bytes of `archive_bytes`")
                    if time.monotonic() > deadline:
                        raise DownloadFailed(url, f"the download took longer than {LONGEST:g} s")
                    piece = answer.read1(_CHUNK)
                    if not piece:
                        break
                    written.write(piece)
                    done += len(piece)
                    progress(done, total)
            if done < total and not stopped():
                raise DownloadFailed(url, f"the download ended after {done} of {total} bytes")
    except (OSError, HTTPException, ValueError) as error:  # URLError and HTTPError are OSErrors
        raise DownloadFailed(url, _in_words(error)) from None


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
        try:
            check_url(newurl, self._allowed)
        except ArchiveNotFound as error:
            fp.close()
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
