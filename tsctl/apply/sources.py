"""A source in a file: its name for the daemon, and the version in the archive.

The steps are planned before anything is loaded, so the version must be known: it is read from the archive's manifest,
or said in the file. The daemon refuses an archive that contains another one.
"""

import json
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tsctl.apply.state import absolute
from tsctl.daemon.marfile import MANIFEST, ManifestError, parse_manifest
from tsctl.daemon.targets import MODULE, ServeTarget
from tsctl.errors import CliError
from tsctl.serving.requests import parameters_of, registered_target

_MOST = 1 << 20  # bytes of a manifest
_MOST_MEMBERS = 10_000


class NamedSource(NamedTuple):
    """The source of a registration: `url`, and the handler in place of the archive's, if any.

    Attributes:
        version: that the source contains; empty if it cannot be read here.
        inferred: whether the source is a file or module without a manifest.
    """

    url: str
    handler: str | None
    version: str
    inferred: bool


def read_source(text: str, handler: str | None, folder: Path, store: Path | None) -> NamedSource:
    """Read a source as a file names it.

    Args:
        handler: that the file names; None for none.
        folder: of the file, from which paths begin.
        store: the daemon's model store.

    Raises:
        CliError: the source cannot be served.
    """
    path = folder / text
    if handler is not None and MODULE.fullmatch(handler) and "://" not in text and path.is_dir():
        url = str(path.resolve())  # as `tsctl export` writes a module: the folder that it is imported from
        return NamedSource(url, handler, "1.0", inferred=True)
    target = registered_target(text, folder)
    if target.kind == "archive" and target.path is None:
        target = ServeTarget(kind="archive", url=absolute(target.url, store))
        if not Path(target.url).exists():
            raise CliError(f"there is no `{text}`, neither in `{folder}` nor in the model store", _stored(store))
    given = handler or parameters_of(target)["handler"]
    return NamedSource(target.url, given, target.version or _version_in(target.url), target.inferred)


def _stored(store: Path | None) -> str:
    """Return a hint that names the store and its archives."""
    if store is None:
        return "the daemon has no model store; name a path"
    names = sorted(each.name for each in store.iterdir() if not each.name.startswith("."))
    return f"`{store}` holds {', '.join(f'`{name}`' for name in names[:8]) or 'nothing'}"


def _version_in(url: str) -> str:
    """Return the version in an archive's manifest; empty if there is none that can be read here."""
    if "://" in url:
        return ""
    try:
        for document in _manifests(Path(url)):
            return parse_manifest(json.loads(document)).model_version
    except (OSError, ValueError, ManifestError, tarfile.TarError, zipfile.BadZipFile, EOFError, RuntimeError):
        pass  # the daemon says what is wrong with the archive
    return ""


def _manifests(archive: Path) -> Iterator[bytes]:
    if archive.is_dir():
        for folder in (archive, *sorted(each for each in archive.iterdir() if each.is_dir())):
            if (folder / MANIFEST).is_file():
                yield (folder / MANIFEST).read_bytes()
    elif zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped, zipped.open(str(MANIFEST)) as member:
            yield member.read(_MOST)
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tarred:
            for _ in range(_MOST_MEMBERS):
                entry = tarred.next()
                if entry is None:
                    return
                if entry.isfile() and entry.name.removeprefix("./").endswith(str(MANIFEST)):
                    file: Any = tarred.extractfile(entry)
                    yield file.read(_MOST)
