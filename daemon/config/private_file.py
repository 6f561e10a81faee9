"""Read files that only their owner may use, or at least change: tokens and the keys of clients."""

import os
import stat
from pathlib import Path

from tsctl.daemon.core.errors import StartError


def read_private(file: Path, kind: str, *, readable: bool = False, most: int = -1, hint: str = "") -> bytes:
    """Return the content of a file that is the daemon's user's, or root's.

    Args:
        kind: of the file, for messages.
        readable: others may read it.
        most: bytes to read; -1 for all.
        hint: the remedy where the file cannot be read.

    Raises:
        StartError: the file cannot be read, belongs to somebody else, or others can use it.
    """
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            content = opened.read(most)
    except OSError as error:
        raise StartError(f"cannot read the {kind} file `{file}`: {error.strerror}", hint) from None
    if status.st_uid not in (0, os.getuid()):
        raise StartError(f"the {kind} file `{file}` belongs to user {status.st_uid}, not to {os.getuid()}")
    if status.st_mode & (0o022 if readable else 0o077):
        verb, remedy = ("write to", "go-w") if readable else ("use", "600")
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        raise StartError(f"others can {verb} the {kind} file `{file}` (mode {mode})", f"run `chmod {remedy} {file}`")
    return content
