"""The name of the model in an archive of the store, read without unpacking the archive."""

import io
import os
import tarfile
import zipfile
from pathlib import Path

from tsctl.daemon.core.texts.json_text import parse_json
from tsctl.daemon.marfile import MANIFEST
from tsctl.daemon.models.archives.manifest import MOST_TEXT
from tsctl.daemon.models.archives.readers import CHUNK, DAMAGED, TarBytes, ZipBytes

_MOST_UNPACKED = 64 * 1024 * 1024  # bytes of a compressed archive, 0.2 s
_FIRST = (
    20  # members of a compressed archive that are looked at; torch-model-archiver writes the manifest first or last
)


class _Beginning(TarBytes):
    """The first `_MOST_UNPACKED` bytes of a tar file: a member before the manifest may be terabytes of zeros."""

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if offset > _MOST_UNPACKED:
            raise EOFError("the manifest is too far from the beginning")
        return super().seek(offset, whence)


def model_name_in(path: Path) -> str | None:
    """Return the name that the manifest gives the model; None if there is no manifest that can be read quickly."""
    try:
        document = parse_json(_manifest(path))
        name = document["model"]["modelName"]
    except (*DAMAGED, OSError, KeyError, TypeError, RuntimeError):  # of deep nesting, and encrypted ones, the last
        return None
    return name if isinstance(name, str) else None


def _manifest(path: Path) -> bytes:
    if path.is_dir():
        with (path / MANIFEST).open("rb") as file:
            return file.read(MOST_TEXT + 1)
    if zipfile.is_zipfile(path):
        with (
            ZipBytes(io.FileIO(path), CHUNK) as file,
            zipfile.ZipFile(file) as archive,
            archive.open(MANIFEST) as member,
        ):
            return member.read(MOST_TEXT + 1)
    with path.open("rb") as file, _Beginning(file) as stream, tarfile.open(fileobj=stream, mode="r:") as packed:
        for _ in range(_FIRST):
            stream.between = True
            found = packed.next()
            if found is None:
                break
            if found.isfile() and found.name.endswith(MANIFEST):
                stream.between = False
                content = packed.extractfile(found)
                return b"" if content is None else content.read(MOST_TEXT + 1)
    raise KeyError(MANIFEST)
