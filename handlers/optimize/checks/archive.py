"""The identity of an archive, by which outcomes and libraries are kept. Importable without torch."""

import hashlib
import os
import re
from pathlib import Path

_DIGEST = re.compile("[0-9a-f]{64}")  # the name of the directory of an unpacked archive: the archive's SHA-256


def archive_of(model_dir: Path) -> str:
    """Return the SHA-256 of an unpacked archive, from the name of its directory.

    A directory that is served in place has none: then a digest of the names, sizes and times of its own files.

    Raises:
        OSError: the directory cannot be read.
    """
    for place in (model_dir, *model_dir.parents):
        if _DIGEST.fullmatch(place.name):
            return place.name
    digest = hashlib.sha256(str(model_dir).encode())
    with os.scandir(model_dir) as found:
        for entry in sorted(found, key=lambda each: each.name):
            if entry.is_file():  # a worker that imports writes into __pycache__
                status = entry.stat()
                digest.update(f"{entry.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return f"marks-{digest.hexdigest()}"
