"""Where an archive comes from: the model store, or a URL that the operator allows, up to a limit of bytes.

https:// http://    downloaded to a temporary file, which is removed when the context closes (web.py)
file://             a path of this machine, once the URL is allowed
others              as the first, by the function that an extension has for the scheme
"""

import asyncio
import contextlib
import shutil
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from stat import S_ISDIR
from typing import Any
from urllib.parse import unquote, urlsplit

from tsctl.daemon import paths
from tsctl.daemon.config.config import Config
from tsctl.daemon.core.errors import ArchiveNotFound, DownloadFailed, NotStored
from tsctl.daemon.models.archives.web import Progress, check_url, fetch
from tsctl.daemon.targets import ARCHIVE_SUFFIXES, is_url, split_function

# Downloads a URL into a new file; ends early when `stopped` is true. Blocks. Raises DownloadFailed or an OSError.
Fetch = Callable[[str, Path, Progress, Callable[[], bool]], None]
LONGEST = 3600.0  # seconds that a download may take, also one whose server sends a header, byte by byte
PLACE = "archive-"  # begins the name of a download's folder
_LONGEST_NAME = 200  # bytes of a file's name, of which the end is kept, with the suffix; Linux takes 255


def locate(url: str, store: Path | None, *, local_paths: bool) -> Path:
    """Find the archive that a registration names.

    Args:
        url: a name in the store, or an absolute path; `:function` may follow the name of a Python file.
        store: the model store, or None if there is none.
        local_paths: whether a path outside the store is allowed.

    Raises:
        ArchiveNotFound: there is no such file or directory, or the path is not allowed.
    """
    if not url:
        raise ArchiveNotFound("empty url")
    if is_url(url):
        raise ArchiveNotFound(f"Given URL {url} does not match any allowed URL(s)")
    if ".." in Path(url).parts:
        raise ArchiveNotFound(f"Relative path is not allowed in url: {url}")
    path = named = Path(split_function(url)[0])
    if path.is_absolute():
        if not local_paths and (store is None or not path.is_relative_to(store)):
            raise ArchiveNotFound(f"Model not found at: {url}")
    elif store is None:
        raise ArchiveNotFound("Model store has not been configured.")
    else:
        path = store / named
    if not _is_there(path):
        raise ArchiveNotFound(f"Model not found at: {url}" if named.is_absolute()
                              else f"Model not found at: {url} (looked in {store})")  # fmt: skip
    return path


def sizes(store: Path | None) -> list[dict[str, Any]]:
    """Return the store's archives: `name`, and `bytes`, the size of a file (None of a directory)."""
    found = []
    for name in archives(store):
        assert store is not None
        try:
            status = (store / name).stat()
        except OSError:
            continue  # the file is being replaced
        found.append({"name": name, "bytes": None if S_ISDIR(status.st_mode) else status.st_size})
    return found


def archives(store: Path | None) -> list[str]:
    """Return the names of the store's archives, sorted."""
    if store is None or not store.is_dir():
        return []
    return sorted(
        entry.name
        for entry in store.iterdir()
        if not entry.name.startswith(".") and (entry.is_dir() or entry.name.endswith(ARCHIVE_SUFFIXES))
    )


_PROGRESS_EVERY = 0.05  # seconds


def throttled(report: Callable[[int, int], object]) -> Progress:
    """Return what passes on a report, but none soon after another."""
    reported = 0.0

    def pass_on(count: int, total: int) -> None:
        nonlocal reported
        if time.monotonic() - reported >= _PROGRESS_EVERY:
            reported = time.monotonic()
            report(count, total)

    return pass_on


def local_path(url: str) -> Path | None:
    """Return the path that an allowed `file://` URL names; None for a URL of another scheme.

    Raises:
        ArchiveNotFound: there is no such file or directory, or the URL names another machine.
    """
    parts = urlsplit(url)
    if parts.scheme.lower() != "file":
        return None
    path = Path(unquote(parts.path))
    if parts.netloc.lower() not in ("", "localhost") or not _is_there(path):
        raise ArchiveNotFound(f"Model not found at: {url}")
    return path


def _is_there(path: Path) -> bool:
    try:
        return path.is_file() or path.is_dir()
    except (OSError, ValueError):  # a name too long, or with a zero byte
        return False


@contextlib.asynccontextmanager
async def archive_of(
    url: str, config: Config, fetchers: Mapping[str, Fetch], progress: Progress, *, local_paths: bool
) -> AsyncIterator[Path]:
    """Find or download the archive that a registration names; the file exists while the context is open.

    Args:
        url: a name in the model store, an absolute path, or a URL.
        fetchers: schemes → what downloads their URLs; other URLs are asked for by HTTP.
        progress: called during a download, on the event loop.
        local_paths: whether a path outside the store is allowed.

    Raises:
        ArchiveNotFound: there is no such archive, or its path or URL is not allowed.
        DownloadFailed: the download failed, passed a limit, or took too long.
        NotStored: this machine cannot write the archive.
    """
    allowed = config.allowed_urls or ()
    if not is_url(url):
        yield locate(url, config.model_store, local_paths=local_paths)
        return
    check_url(url, allowed)
    path = local_path(url)
    if path is not None:
        yield path
        return
    by_http = partial(fetch, allowed=allowed, limit=config.archive_bytes)
    fetcher = fetchers.get(url.partition(":")[0].lower(), by_http)
    async with downloaded(url, paths.downloads_dir(config.state_dir), fetcher, progress) as file:
        yield file


@contextlib.asynccontextmanager
async def downloaded(url: str, folder: Path, fetcher: Fetch, progress: Progress) -> AsyncIterator[Path]:
    """Download an archive into `folder`, where the file exists while the context is open.

    Args:
        url: one that passed `check_url`.
        progress: called on the event loop.

    Raises:
        DownloadFailed: the download failed, passed a limit, or took too long.
        NotStored: this machine cannot write the archive, e.g. because the disk is full.
    """
    stopped = threading.Event()
    place: Path | None = None
    name = PurePosixPath(unquote(urlsplit(url).path)).name.replace("\0", "").encode(errors="ignore")[-_LONGEST_NAME:]
    try:
        try:
            place = _make_place(folder)
            file = place / (name.decode(errors="ignore") or "archive")
            download = _in_thread(lambda report: fetcher(url, file, report, stopped.is_set), progress)
            await asyncio.wait_for(download, LONGEST)
        except TimeoutError:
            raise DownloadFailed(url, f"the download took longer than {LONGEST:g} s") from None
        except OSError as error:
            raise NotStored(url, "downloaded", folder, error) from None
        yield file
    finally:
        stopped.set()
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)


def _make_place(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=PLACE, dir=folder))


async def _in_thread(work: Callable[[Progress], None], progress: Progress) -> None:
    """Run `work` in its own thread, which may hang: the stopping daemon waits for the executor's threads."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

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
            work(throttled(partial(tell, progress)))
        except Exception as error:  # noqa: BLE001 - raised where `done` is awaited
            tell(end, error)
        else:
            tell(end, None)

    threading.Thread(target=run, name="download", daemon=True).start()
    await done
