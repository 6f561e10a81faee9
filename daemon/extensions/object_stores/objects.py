"""Download an archive from a store of objects, by a program of its own (fetch/).

The stores' clients take seconds to import, and hundreds of megabytes in the worst case. So nothing of them is in the
daemon, and a download that hangs is ended by a signal.
"""

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tsctl.daemon import paths
from tsctl.daemon.config.config import Config
from tsctl.daemon.core.errors import DownloadFailed
from tsctl.daemon.extension import Service
from tsctl.daemon.extensions.object_stores.parts import fetch_rest, recover
from tsctl.daemon.models.archives.opening import Archives
from tsctl.daemon.models.archives.web import Progress

SILENCE = 300.0  # seconds without a word of the program; it asks again for a piece several times before it gives up
_PROGRAM = (sys.executable, "-P", "-m", "tsctl.daemon.extensions.object_stores.fetch")
_LOOK_EVERY = 0.2  # seconds; a download that is given up ends so soon


class ObjectStores(Service):
    """Downloads the archives with URLs of these schemes for the registrar of one daemon."""

    def __init__(self, config: Config, archives: Archives, schemes: Sequence[str]) -> None:
        self._folder, self._limit = paths.downloads_dir(config.state_dir), config.archive_bytes
        recover(self._folder)  # a daemon that this one replaces has ended its downloads, and begins none
        archives.fetchers |= dict.fromkeys(schemes, self.fetch)

    def fetch(self, url: str, file: Path, progress: Progress, stopped: Callable[[], bool]) -> None:
        """Download into a new file, from the part on that an earlier download left; errors as `fetch_rest`."""

        def fetch(data: Path, tag: Path) -> bool:
            return fetch_object(url, data, self._limit, progress, stopped, tag)

        fetch_rest(url, file, self._folder, fetch)


def fetch_object(url: str, file: Path, limit: int, progress: Progress, stopped: Callable[[], bool], tag: Path) -> bool:
    """Download into a file, and return whether the object is whole. Blocks: for a thread.

    Args:
        file: a new one, or the part that `tag` belongs to.
        tag: the file that says of which content `file` has the beginning.
        limit: the largest size of the archive, in bytes.
        stopped: when true, the download ends and the file is left incomplete.

    Raises:
        DownloadFailed: the store failed, a package is missing, or the download is too large, too slow, or not what the
            store says that it is.
        OSError: the disk, or its user's quota, is full.
    """
    try:
        # A group of its own: Ctrl-C in the daemon's terminal is the daemon's.
        process = subprocess.Popen(
            _PROGRAM,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        raise DownloadFailed(url, f"the program for it cannot be started: {error.strerror}") from None
    try:
        with contextlib.suppress(BrokenPipeError):  # the program has ended, which its missing end tells
            assert process.stdin is not None
            order = {"url": url, "file": str(file), "limit": limit, "tag": str(tag)}
            process.stdin.write(json.dumps(order).encode() + b"\n")
        for event in _events(process, stopped):
            if "end" in event:
                if "full" in event:
                    raise OSError(event["full"], os.strerror(event["full"]))
                if event["end"]:
                    raise DownloadFailed(url, event["end"])
                return True
            progress(event["done"], event["total"])
        if not stopped():
            raise DownloadFailed(url, "the program for it has ended, or takes too long")
        return False
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        process.wait()


def _events(process: "subprocess.Popen[bytes]", stopped: Callable[[], bool]) -> Iterator[dict[str, Any]]:
    """Yield the program's messages, until its output ends, it is silent for long, or the download is given up."""
    assert process.stdout is not None
    output = process.stdout.fileno()
    heard, rest = time.monotonic(), b""
    while not stopped():
        now = time.monotonic()
        if now - heard > SILENCE:
            return
        if not select.select([output], [], [], _LOOK_EVERY)[0]:
            continue
        data = os.read(output, 65536)
        if not data:
            return
        heard, (*lines, rest) = now, (rest + data).split(b"\n")
        for line in lines:
            yield json.loads(line)
