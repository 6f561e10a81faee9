"""The model archive: its manifest, which is read without unpacking the archive, and its writer.

A `.mar` is a zip with the model's files at its root and `MAR-INF/MANIFEST.json`; the layout
and the keys are those of torch-model-archiver 0.12. Unpacking untrusted archives is in
`tsctl.daemon.models.archives.unpack`; here is only the part shared with the command line.

Standard library only: the command line imports this module.
"""

import contextlib
import errno
import glob
import gzip
import io
import json
import math
import mmap
import re
import shutil
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from tsctl.handlers.names import BUILT_IN, NOT_BUILT_IN, split_handler

MANIFEST = "MAR-INF/MANIFEST.json"
MOST_TEXT = 256 * 1024  # bytes of a manifest, of a model-config.yaml, of a requirements.txt
CHUNK = 1024 * 1024
FORMATS = ("default", "zip-store", "tgz", "no-archive")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-.]*")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-.+]*")
_SHOWN = 200  # characters of a wrong value
_LOCATION = re.compile(rb"\x0a\x08location\x12")  # of a StringStringEntryProto: the key, and before the value's length
_TAR_HEADER = 16 * 1024  # bytes that may come before a member: its header, long names, extended headers
_MOST_MEMBERS = 10_000  # of a tar file, that are looked at for the manifest: `archive_files` of a usual daemon
# Errors that zipfile, tarfile and their decompressors raise for damaged bytes (the test feeds them some).
DAMAGED = (
    zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, LookupError, ValueError,
    OverflowError,
)  # fmt: skip
UNREADABLE = (*DAMAGED, OSError, RuntimeError)  # the last of deep nesting, and of a zip that zipfile does not support
_MEMBER = b"PK\x01\x02"  # begins a member in a zip's directory
_DROPPED = {"__MACOSX", "__pycache__", "MAR-INF"}  # the last: an unpacked archive, packed again


class ManifestError(ValueError):
    """A manifest lacks something, or holds the wrong thing."""


class PackError(ValueError):
    """An archive cannot be written; the message names the value."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """An archive's own description.

    Attributes:
        handler: a built-in name, `file.py` or `file.py:function`; empty if the manifest names none.
        model_file, serialized_file, config_file, requirements_file: names within the archive.
        raw: the whole document, as handlers see it in `context.manifest`.
    """

    model_name: str
    model_version: str
    handler: str
    runtime: str = "python"
    model_file: str | None = None
    serialized_file: str | None = None
    config_file: str | None = None
    requirements_file: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)


def parse_manifest(document: object) -> Manifest:
    """Parse a manifest's JSON value.

    Raises:
        ManifestError: a value is missing or wrong; with TorchServe's sentence where there is one.
    """
    if isinstance(document, dict) and "model" not in document:
        raise ManifestError("Model name is not defined. (The manifest has no `model`.)")
    if not isinstance(document, dict) or not isinstance(document["model"], dict):
        raise ManifestError("Missing Model entry in manifest file.")
    model = document["model"]
    for key, value in model.items():
        if key != "extensions" and value is not None and not isinstance(value, str):
            raise ManifestError(f"The manifest's `{key[:_SHOWN]}` is {json.dumps(value)[:_SHOWN]}; expected a string.")
    if not model.get("modelName"):
        raise ManifestError("Model name is not defined.")
    runtime = document.get("runtime", "python")
    if runtime not in ("python", "python3"):
        raise ManifestError(
            f"Runtime is not defined or invalid. (It is {json.dumps(runtime)[:_SHOWN]}; `python` is served here: pack a"
            " model of the C++ backend anew, with the handler base_handler.)"
        )
    return Manifest(
        model_name=model["modelName"],
        model_version=model.get("modelVersion") or "1.0",
        handler=model.get("handler") or "",
        runtime=runtime,
        model_file=model.get("modelFile"),
        serialized_file=model.get("serializedFile"),
        config_file=model.get("configFile"),
        requirements_file=model.get("requirementsFile"),
        raw=document,
    )


def manifest_in(archive: Path, most: float = math.inf) -> Any:
    """Read the manifest's JSON value from an archive that is not unpacked. Blocks.

    Whoever looks into an archive before it is registered does so here; the registration reads the manifest of the
    folder that it has unpacked (models/archives/manifest.py), within the same bound.

    Args:
        archive: a zip, a gzipped tar, or a folder; the manifest is below its root, or below a folder there.
        most: bytes of a tar file that are unpacked to find it.

    Raises:
        UNREADABLE: there is no manifest, or none that the registration would read.
    """
    if archive.is_dir():
        for folder in (archive, *sorted(each for each in archive.iterdir() if each.is_dir())):
            if (folder / MANIFEST).is_file():
                with (folder / MANIFEST).open("rb") as file:
                    return _parsed(file)
    with _open(archive) as file:
        if file.read(2) == b"PK":
            with open_zip(archive) as zipped:
                return manifest_in_zip(zipped)
        file.seek(0)
        with TarBytes(io.BufferedReader(file), most) as stream, tarfile.open(fileobj=stream, mode="r:") as tarred:
            for _, member in zip(range(_MOST_MEMBERS), tarred, strict=False):
                stream.between = False
                if member.isreg() and _is_manifest(member.name):
                    content = tarred.extractfile(member)
                    assert content is not None
                    return _parsed(content)
                stream.between = True
    raise LookupError(MANIFEST)


@contextlib.contextmanager
def open_zip(archive: Path, most: int = CHUNK) -> Iterator[zipfile.ZipFile]:
    """Open a zip whose directory has at most so many bytes; `UNREADABLE` has the errors."""
    with ZipBytes(_open(archive), most) as raw, zipfile.ZipFile(raw) as zipped:
        yield zipped


def _open(archive: Path) -> io.FileIO:
    if not archive.is_file():  # a pipe would be waited for
        raise FileNotFoundError(errno.ENOENT, "no file", str(archive))
    return io.FileIO(archive)


def manifest_in_zip(zipped: zipfile.ZipFile) -> Any:
    """Read the manifest's JSON value from a zip; errors as in `manifest_in`."""
    found = (each for each in zipped.infolist() if _is_manifest(each.filename))
    info = min(found, key=lambda each: each.filename.count("/"), default=None)  # a folder may be another archive's
    if info is None or not is_bounded(info):
        raise LookupError(MANIFEST)
    with zipped.open(info) as content:
        return _parsed(content)


def _is_manifest(member: str) -> bool:
    if not member.endswith(MANIFEST):
        return False
    parts = PurePosixPath(member).parts
    return len(parts) <= 3 and parts[-2] == "MAR-INF"


def _parsed(content: IO[bytes]) -> Any:
    text = content.read(MOST_TEXT + 1)
    if len(text) > MOST_TEXT:
        raise ValueError(f"the manifest has more than {MOST_TEXT} bytes")
    return json.loads(text)


def is_bounded(info: zipfile.ZipInfo) -> bool:
    """Return whether zipfile unpacks a member piece by piece.

    It unpacks a chunk of bzip2 or lzma at once: a megabyte of bzip2 can be 20 GB.
    """
    return info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class LargeDirectory(zipfile.BadZipFile):
    """A zip's directory is larger than is allowed; the message says what of it."""


class ZipBytes(io.BufferedReader):
    """A zip's bytes, with a bounded directory.

    zipfile reads the directory whole: a million members would be objects before the first is seen.

    Attributes:
        members: as many members are allowed in the directory, which is read first; None once that is done.
    """

    def __init__(self, file: io.RawIOBase, most: int, members: int | None = None) -> None:
        super().__init__(file)
        self._most, self.members = most, members

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > self._most:
            raise LargeDirectory(f"its directory has {size} bytes, and at most {self._most} are allowed")
        data = super().read(size)
        if self.members is not None and (count := data.count(_MEMBER)) > self.members:
            raise LargeDirectory(f"it has {count} files and directories, and at most {self.members} are allowed")
        return data


class TarBytes(gzip.GzipFile):
    """A tar file's bytes, with at most `_TAR_HEADER` of them before a member.

    tarfile reads a header whole whatever its size, follows chains of headers and lists of holes, and searches them
    with regular expressions that take quadratic time in a run of digits (CVE-2024-6232).

    Attributes:
        between: whether the bytes read now are not a member's content.
        last: the bytes that were read last between members.
    """

    def __init__(self, file: IO[bytes], most: float = math.inf) -> None:
        super().__init__(fileobj=file)
        self.last = b""
        self._left: int | None = _TAR_HEADER
        self._most = most  # bytes that are passed over

    @property
    def between(self) -> bool:
        return self._left is not None

    @between.setter
    def between(self, between: bool) -> None:
        self._left = _TAR_HEADER if between else None

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if offset > self._most:  # a member may be terabytes of zeros
            raise EOFError(f"more than {self._most} bytes")
        return super().seek(offset, whence)

    def read(self, size: int | None = -1) -> bytes:
        if self._left is None or size is None:
            return super().read(size)
        self._left -= size
        if self._left < 0:
            raise tarfile.ReadError(f"headers of more than {_TAR_HEADER} bytes")
        data = self.last = super().read(size)
        if re.search(rb"[0-9]{256}", data):
            raise tarfile.ReadError("a header with a number of more than 255 digits")
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """The contents of an archive: the flags of torch-model-archiver.

    Attributes:
        beside: name in the archive → path, of files that the handler imports or opens.
        kept: names of folders among `extra_files` that stay folders; of others the content is at the root, as
            torch-model-archiver has it.
    """

    model_name: str
    version: str
    handler: str
    model_file: Path | None = None
    serialized_file: Path | None = None
    extra_files: str = ""
    requirements_file: Path | None = None
    config_file: Path | None = None
    runtime: str = "python"
    beside: Mapping[str, Path] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()

    def manifest(self) -> dict[str, Any]:
        model: dict[str, Any] = {"modelName": self.model_name}
        if self.serialized_file is not None:
            model["serializedFile"] = self.serialized_file.name
        model["handler"] = self.handler.rsplit("/", 1)[-1]
        if self.model_file is not None:
            model["modelFile"] = self.model_file.name
        model["modelVersion"] = self.version
        if self.requirements_file is not None:
            model["requirementsFile"] = self.requirements_file.name
        if self.config_file is not None:
            model["configFile"] = self.config_file.name
        now = time.strftime("%d/%m/%Y %H:%M:%S")
        return {"createdOn": now, "runtime": self.runtime, "model": model, "archiverVersion": "0.12.0"}

    def members(self) -> dict[str, Path]:
        """Return the archive's files: name in the archive → path on this machine.

        Raises:
            PackError: a name is not allowed, a file is missing, or two want the same place.
        """
        if not NAME.fullmatch(self.model_name):
            raise PackError(f"`{self.model_name}` is no model name: letters, digits, `_`, `-` and `.`, no leading sign")
        if not VERSION.fullmatch(self.version):
            raise PackError(f"`{self.version}` is no version: letters, digits, `_`, `-`, `+` and `.`, no leading sign")
        members: dict[str, Path] = {}

        def add(name: str, path: Path, what: str) -> None:
            if not path.is_file():
                raise PackError(f"no {what} at `{path}`")
            if members.get(name, path).absolute() != path.absolute():
                raise PackError(f"both `{members[name]}` and `{path}` would be `{name}` in the archive")
            members[name] = path

        handler_path = self.handler.partition(":")[0]
        if split_handler(self.handler)[0] not in BUILT_IN or handler_path.endswith(".py"):
            path = Path(handler_path if handler_path.endswith(".py") else handler_path + ".py")
            if not path.is_file():
                if self.handler in NOT_BUILT_IN:
                    raise PackError(
                        f"TorchServe's handler `{self.handler}` is not built in here: {NOT_BUILT_IN[self.handler]}"
                    )
                names = ", ".join(BUILT_IN)
                raise PackError(f"handler `{self.handler}` is neither a file nor a built-in handler ({names})")
            add(path.name, path, "handler file")
        for path_or_none, what in (
            (self.model_file, "model file"),
            (self.serialized_file, "serialized file"),
            (self.requirements_file, "requirements file"),
            (self.config_file, "config file"),
        ):
            if path_or_none is not None:
                add(path_or_none.name, path_or_none, what)
        for name, path in {**self.beside, **self.weights()}.items():
            add(name, path, "file")
        for pattern in filter(None, self.extra_files.split(",")):
            found = sorted(glob.glob(pattern)) or [pattern]
            for extra in map(Path, found):
                if extra.is_dir():
                    for inner in sorted(extra.rglob("*")):
                        below = inner.relative_to(extra)
                        if inner.is_file() and not is_dropped(below):
                            placed = extra.name / below if extra.name in self.kept else below
                            add(placed.as_posix(), inner, "extra file")
                else:
                    add(extra.name, extra, "extra file")
        return members

    def weights(self) -> dict[str, Path]:
        """Return the files with the weights of an ONNX model that it keeps apart: name beside the model → path.

        Raises:
            PackError: the model names a file that is not below its folder.
        """
        model = self.serialized_file
        if model is None or model.suffix != ".onnx" or not model.is_file():
            return {}
        apart = {}
        for name in sorted(external_files(model)):
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise PackError(
                    f"`{model}` has weights in `{name}`, which is not below its folder: save them beside it"
                )
            apart[Path(name).as_posix()] = model.parent / name
            if not apart[Path(name).as_posix()].is_file():
                raise PackError(f"`{model}` has weights in `{name}`, and there is no such file beside it")
        return apart


def external_files(model: Path) -> set[str]:
    """Return the names of the files in which an ONNX model keeps its weights.

    Each tensor of the file says so by an entry with the key `location`, in the bytes of Protocol Buffers: searched for
    as these bytes, since a model may be larger than memory, and the command line has no package that reads it.

    Raises:
        PackError: the file cannot be read.
    """
    names: set[str] = set()
    try:
        with model.open("rb") as file:
            if not model.stat().st_size:
                return names
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                for found in _LOCATION.finditer(data):
                    length, at = data[found.end()], found.end() + 1
                    if length > 127:  # two bytes: the file's name is shorter than 16 384
                        length, at = (length & 127) | data[at] << 7, at + 1
                    names.add(data[at : at + length].decode())
    except (OSError, IndexError, UnicodeDecodeError) as error:
        raise PackError(f"cannot read `{model}`: {error}") from None
    return names


def is_dropped(path: Path) -> bool:
    """Return whether a file of an extra directory stays out; hidden directories do, hidden files do not."""
    return bool(_DROPPED & set(path.parts)) or any(part.startswith(".") for part in path.parts[:-1])


def target_of(packing: Packing, directory: Path, archive_format: str) -> Path:
    """Return the path of the archive in this format."""
    suffix = {"tgz": ".tar.gz", "no-archive": ""}.get(archive_format, ".mar")
    return directory / (packing.model_name + suffix)


def write_archive(
    packing: Packing,
    directory: Path,
    *,
    archive_format: str = "default",
    force: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Write an archive; the target appears whole or not at all.

    Args:
        directory: an existing directory; the file in it is named after the model.
        archive_format: one of `FORMATS`.
        force: replace an existing target; a folder only if it is an archive.
        progress: called with the bytes read so far and in all.

    Raises:
        PackError: something is missing, not allowed, or in the way.
    """
    members = packing.members()
    if not directory.is_dir():
        raise PackError(f"no directory at `{directory}`")
    target = target_of(packing, directory, archive_format)
    _check_target(target, force=force)
    stored = {packing.serialized_file, *packing.weights().values()}
    total, done = sum(path.stat().st_size for path in members.values()), 0
    with tempfile.TemporaryDirectory(prefix=".tsctl-", dir=directory) as temporary:
        draft, manifest = Path(temporary) / target.name, Path(temporary) / ".manifest"
        manifest.write_text(json.dumps(packing.manifest(), indent=2))
        manifest.chmod(0o644)
        with _writing(draft, packing.model_name, archive_format) as add:
            for name, path in members.items():
                # Weights hardly compress (7 % at 20 MB/s): they are stored, which any unzip reads.
                add(name, path, path not in stored)
                done += path.stat().st_size
                progress(done, total)
            add(MANIFEST, manifest, True)
        _check_target(target, force=force)  # again: packing takes minutes, and others make files, too
        if target.is_dir():
            shutil.rmtree(target)
        draft.replace(target)
    return target


def _check_target(target: Path, *, force: bool) -> None:
    """Raise PackError if something is in the target's place that must stay."""
    if target.exists() and not force:
        raise PackError(f"`{target}` exists already; `--force` replaces it")
    if target.is_dir() and (target.is_symlink() or not (target / MANIFEST).is_file()):
        raise PackError(
            f"`{target}` is a folder without `{MANIFEST}`: no archive to replace; move it, or rename the model"
        )


@contextlib.contextmanager
def _writing(draft: Path, model_name: str, archive_format: str) -> Iterator[Callable[[str, Path, bool], object]]:
    """Yield what adds a file: its name in the archive, its path on this machine, and whether it may be compressed."""

    def copy(name: str, path: Path, compress: bool) -> None:  # noqa: ARG001
        place = draft / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place)

    if archive_format == "tgz":
        with tarfile.open(draft, "w:gz", compresslevel=6) as tar:
            yield lambda name, path, compress: tar.add(path, f"{model_name}/{name}", recursive=False)
    elif archive_format == "no-archive":
        yield copy
    else:
        method = zipfile.ZIP_STORED if archive_format == "zip-store" else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(draft, "w", method, strict_timestamps=False) as zipped:  # files from 1970 are common
            yield lambda name, path, compress: zipped.write(path, name, method if compress else zipfile.ZIP_STORED)
