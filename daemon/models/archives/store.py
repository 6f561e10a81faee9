"""The model store: the directory that archives come from."""

import re
from pathlib import Path
from stat import S_ISDIR
from typing import Any

from tsctl.daemon.core.errors import ArchiveNotFound
from tsctl.daemon.targets import split_function

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
_SUFFIXES = (".mar", ".tar.gz", ".tgz", ".model")


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
    if _SCHEME.match(url):
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
    try:
        found = path.is_file() or path.is_dir()
    except (OSError, ValueError):  # a name too long, or with a zero byte
        found = False
    if not found:
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
        if not entry.name.startswith(".") and (entry.is_dir() or entry.name.endswith(_SUFFIXES))
    )
