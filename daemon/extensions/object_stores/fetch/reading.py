"""Read an object in pieces, each of which is asked for again after a cut, and check its digest.

piece   1 MiB at first; twice as much while a piece takes under a second, up to 32 MiB; so that progress is told
cut     the piece is asked for again, after a pause that doubles; what has been written stays
part    what an earlier download has written of the same content is read instead, and checked with the rest
"""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tsctl.daemon.extensions.object_stores.fetch.stores import STORES, Digest, FetchError, digest_of, filesystem_of

LEAST_PIECE, MOST_PIECE = 1 << 20, 32 << 20  # bytes
QUICK, SLOW = 1.0, 5.0  # seconds of a piece: the next one is twice, or half, as large
ATTEMPTS = 6  # of one piece
FIRST_PAUSE = 0.5  # seconds

Progress = Callable[[int, int], None]  # bytes done, bytes in all


class RemoteObject(NamedTuple):
    """An object that can be read.

    Attributes:
        size: bytes.
        read: returns the bytes from one position to another.
        digest: of all bytes; None if the store knows none.
        tag: what the store calls this content now; another object under the same name has another one. Begins with a
            space if the store knows only the size.
    """

    size: int
    read: Callable[[int, int], bytes]
    digest: Digest | None
    tag: Callable[[], str]


def open_object(url: str) -> RemoteObject:
    """Find an object.

    Raises:
        FetchError: there is no such object, it is none that can be read, or a package is missing.
    """
    scheme, _, path = url.partition("://")
    scheme = scheme.lower()
    if scheme not in STORES or not path:
        raise FetchError("expected s3://BUCKET/KEY, gs://BUCKET/OBJECT or hf://OWNER/REPO/FILE")
    filesystem = filesystem_of(scheme)
    details = filesystem.info(path)
    if details.get("type") != "file":
        raise FetchError("this is a folder; name an archive in it")

    def read(start: int, end: int) -> bytes:
        # A new file for each piece: after a cut its connection is of no use.
        with filesystem.open(path, "rb", cache_type="none") as file:
            file.seek(start)
            return bytes(file.read(end - start))

    def tag() -> str:
        filesystem.invalidate_cache()
        return _tag(filesystem.info(path))

    digest = digest_of(scheme, filesystem, path, details)
    return RemoteObject(int(details["size"]), read, digest, tag)


def _tag(details: dict[str, Any]) -> str:
    known = next((details[key] for key in ("generation", "ETag", "etag", "blob_id") if details.get(key)), "")
    return f"{known} {details['size']}"


def download(
    found: RemoteObject,
    file: Path,
    limit: int,
    progress: Progress,
    tag_file: Path,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Write an object to a file.

    Args:
        file: a new one, or one with the beginning of the content that `tag_file` names.
        limit: the largest size, in bytes.
        tag_file: names the content of `file`, for a later download. Gone if the content is refused.

    Raises:
        FetchError: the object is too large, was changed meanwhile, or does not have its digest.
        Exception: the store's own, of a piece that failed `ATTEMPTS` times.
    """
    if found.size > limit:
        raise FetchError(f"the archive is larger than the {limit} bytes of `archive_bytes`")
    before = found.tag()
    piece = LEAST_PIECE
    with file.open("a+b") as written:
        # A daemon that was killed leaves this program, which may write one more piece before it notices.
        fcntl.flock(written, fcntl.LOCK_EX)
        done = _take_part(found, written, tag_file, before, progress)
        while done < found.size:
            begun = time.monotonic()
            data = _insist(found, done, min(done + piece, found.size), sleep)
            written.write(data)
            if found.digest is not None:
                found.digest.hashed.update(data)
            done += len(data)
            progress(done, found.size)
            took = time.monotonic() - begun
            if took < QUICK:
                piece = min(2 * piece, MOST_PIECE)
            elif took > SLOW:
                piece = max(piece // 2, LEAST_PIECE)
    try:
        _check(found, before)
    except FetchError:
        tag_file.unlink(missing_ok=True)
        raise


def _take_part(found: RemoteObject, file: BinaryIO, tag_file: Path, tag: str, progress: Progress) -> int:
    """Return how many bytes the file has of this content; those are hashed. Another content is removed."""
    done, length = 0, file.seek(0, os.SEEK_END)
    if length <= found.size and tag_file.is_file() and tag_file.read_text() == tag:
        file.seek(0)
        while data := file.read(LEAST_PIECE):
            if found.digest is not None:
                found.digest.hashed.update(data)
            done += len(data)
            progress(done, found.size)
        return done
    tag_file.unlink(missing_ok=True)
    file.truncate(0)
    if not tag.startswith(" "):
        tag_file.write_text(tag)
    return done


def _check(found: RemoteObject, before: str) -> None:
    """Raise FetchError if the object was replaced since the tag `before`, or does not have its digest."""
    if found.tag() != before:
        raise FetchError("the object was replaced while it was downloaded")
    if found.digest is not None and found.digest.hashed.hexdigest() != found.digest.expected:
        algorithm, actual = found.digest.hashed.name, found.digest.hashed.hexdigest()
        raise FetchError(f"the {algorithm} is {actual}; expected {found.digest.expected}, as the store says")


def _insist(found: RemoteObject, start: int, end: int, sleep: Callable[[float], None]) -> bytes:
    """Read a piece, again after an error or where fewer bytes come.

    Raises:
        FetchError: no byte came in `ATTEMPTS` attempts.
        Exception: the store's own, of the last attempt.
    """
    pause = FIRST_PAUSE
    for attempt in range(ATTEMPTS):
        last = attempt == ATTEMPTS - 1
        try:
            data = found.read(start, end)
        except (PermissionError, FileNotFoundError):
            raise
        except Exception:  # the clients' errors have no class in common
            if last:
                raise
        else:
            if len(data) > end - start:
                raise FetchError("the store sent more bytes than it was asked for")
            if data:
                return data
        if not last:
            sleep(pause)
            pause *= 2
    raise FetchError(f"the download ended after {start} of {found.size} bytes")
