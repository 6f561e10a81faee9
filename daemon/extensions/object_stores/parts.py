"""The part of an object that an interrupted download leaves, for the next command that asks for the same URL.

    `part-KEY` ──taken by a rename──▶ `unfinished-KEY-…` ──whole──▶ the archive's file
        ▲                                    │
        └──interrupted, or the daemon ended──┘

So two downloads never write to one file. A part is `data`, and `tag`: which content it is the beginning of, as the
store names that (fetch/reading.py). At most `MOST` are kept, for a day, and none over a restart of the machine, after
which the file may have other bytes than were written.

Everything here blocks: for a thread.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

MOST = 4
LONGEST_KEPT = 86_400.0  # seconds
_DATA, _TAG = "data", "tag"
_KEPT, _OWN = "part-", "unfinished-"


def fetch_rest(
    url: str, file: Path, folder: Path, fetch: Callable[[Path, Path], bool], wall: Callable[[], float] = time.time
) -> None:
    """Download an object into a new file, from the part on that an earlier download left.

    Args:
        file: the archive; its folder may be gone when the download is given up.
        folder: where parts are kept, on the same disk.
        fetch: downloads into `data`, beside a `tag`; returns whether the object is whole.
        wall: returns seconds since the epoch.

    Raises:
        OSError: the disk failed.
        Exception: that of `fetch`; the part is kept.
    """
    remove_old(folder, wall())
    key = hashlib.sha256(f"{_boot_id()} {url}".encode(errors="surrogatepass")).hexdigest()[:32]
    kept, own = folder / f"{_KEPT}{key}", Path(tempfile.mkdtemp(prefix=f"{_OWN}{key}-", dir=folder))
    with contextlib.suppress(OSError):  # there is none, or another download has taken it
        os.rename(kept, own)
    data, tag = own / _DATA, own / _TAG
    try:
        if fetch(data, tag):
            os.replace(data, file)
    finally:
        _keep(own, kept)
        remove_old(folder, wall())


def recover(folder: Path, wall: Callable[[], float] = time.time) -> None:
    """Keep the parts that an earlier daemon was writing, and remove old ones.

    Args:
        wall: as for `fetch_rest`.
    """
    for each in list(folder.glob(f"{_OWN}*")):
        key = each.name.removeprefix(_OWN).partition("-")[0]
        _keep(each, folder / f"{_KEPT}{key}")
    remove_old(folder, wall())


def _keep(own: Path, kept: Path) -> None:
    """Turn a download's directory into a part, in place of one that is there; remove it if it has no part."""
    with contextlib.suppress(OSError):  # no data; or in an upgrade the other daemon has just kept it
        if (own / _TAG).exists() and (own / _DATA).stat().st_size:
            shutil.rmtree(kept, ignore_errors=True)
            os.rename(own, kept)
    shutil.rmtree(own, ignore_errors=True)


def _boot_id() -> str:
    """Return the id of this run of the kernel; empty where it tells none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def remove_old(folder: Path, now: float) -> None:
    """Remove parts that are older than a day, and all but the newest `MOST`.

    Args:
        now: seconds since the epoch.
    """
    found = []
    for part in folder.glob(f"{_KEPT}*"):
        with contextlib.suppress(OSError):  # taken meanwhile
            found.append(((part / _DATA).stat().st_mtime, part))
    for rank, (written, part) in enumerate(sorted(found, reverse=True)):
        if rank >= MOST or now - written > LONGEST_KEPT:
            shutil.rmtree(part, ignore_errors=True)
