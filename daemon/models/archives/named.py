"""The name of the model in an archive of the store, read without unpacking the archive."""

import tarfile
import zipfile
from pathlib import Path

from daemon.core.layouts.json_text import parse_json
from daemon.marfile import MANIFEST

_MOST = 1024 * 1024  # bytes of a manifest
_FIRST = (
    20  # members of a compressed archive that are looked at; torch-model-archiver writes the manifest first or last
)


def model_name_in(path: Path) -> str | None:
    """Return the name that the manifest gives the model; None if there is no manifest that can be read quickly."""
    try:
        document = parse_json(_manifest(path))
        name = document["model"]["modelName"]
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, tarfile.TarError, EOFError):
        return None
    return name if isinstance(name, str) else None


def _manifest(path: Path) -> bytes:
    if path.is_dir():
        with (path / MANIFEST).open("rb") as file:
            return file.read(_MOST)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive, archive.open(MANIFEST) as member:
            return member.read(_MOST)
    with tarfile.open(path) as packed:
        for _ in range(_FIRST):
            found = packed.next()
            if found is None:
                break
            if found.isfile() and found.name.endswith(MANIFEST):
                content = packed.extractfile(found)
                return b"" if content is None else content.read(_MOST)
    raise KeyError(MANIFEST)
