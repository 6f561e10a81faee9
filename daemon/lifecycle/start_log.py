"""`start.log`, bounded: the output beside the daemon's own log, such as a crash's last words.

The file is open as stdout and stderr, also of libraries in C, and renaming would not end that. So a file that has
become long is copied to `start.log.1` and emptied: while the daemon runs, and before each start, because one that
fails appends its reason, and nobody looks afterwards.

Standard library only: the command line imports this module.
"""

import fcntl
import os
import stat
from pathlib import Path

MOST_BYTES = 1_000_000  # in the file; and of what is kept of it, the end
NAME = "start.log"  # a file of another name is a user's own


def shorten(descriptor: int) -> None:
    """Empty the file behind a descriptor if it is long, and keep its end beside it; not another file or a terminal.

    Raises:
        OSError: the end cannot be kept; the file was emptied all the same.
    """
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size <= MOST_BYTES:
        return
    here = f"/proc/self/fd/{descriptor}"
    path = Path(os.readlink(here))
    if path.name != NAME:
        return
    # Else the next line would be written behind a hole of the old size.
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
    try:
        with open(here, "rb") as file:
            file.seek(status.st_size - MOST_BYTES)
            end = file.read(MOST_BYTES)
        kept = os.open(f"{path}.1", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(kept, "wb") as beside:
            beside.write(end)
    finally:
        os.ftruncate(descriptor, 0)
