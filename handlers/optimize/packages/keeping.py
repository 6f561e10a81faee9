"""The folders of a model's libraries, named by all that the libraries were made of.

    TORCHINDUCTOR_CACHE_DIR/packages/DIGEST/   description.json; full.so, one.so, rest.so, or model.onnx, weights

A folder is written under another name and renamed, so it is whole or not there. Folders that were not used for
`UNUSED` seconds are removed when another one is written.
"""

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import torch
from torch import nn

from tsctl.handlers.optimize.checks.archive import archive_of
from tsctl.handlers.optimize.checks.processor import read_processor
from tsctl.handlers.optimize.packages.package import Description, Packages

VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
FORMAT = 1  # raised when libraries are made differently
UNUSED = 30 * 24 * 3600.0
_DESCRIPTION = "description.json"
Kept = TypeVar("Kept", bound=Packages)
_OURS = ("torch", "tsctl")  # known by their versions


def folder_for(handler: Any, model_dir: Path, done: Sequence[str], batch_size: int) -> Path | None:
    """Return where the libraries of a handler's model are, or would be; None if none are kept here.

    The digest covers the archive, the files of the Python packages that the model's classes come from, and the weights
    themselves where a handler of the user's may have taken them from anywhere.
    """
    directory = os.environ.get(VARIABLE)
    if not directory or not hasattr(torch._C._aoti, "AOTIModelContainerRunnerCpu"):
        return None
    ours = type(handler).initialize.__module__.startswith("tsctl.handlers.builtin.")
    facts: Mapping[str, Any] = {
        "format": FORMAT, "archive": archive_of(model_dir), "torch": f"{torch.__version__} {torch.version.git_version}",
        "processor": str(read_processor()), "done": list(done), "batch_size": batch_size,
        "handler": f"{type(handler).__module__}.{type(handler).__qualname__}",
        "code": _code(handler.model, model_dir), "weights": "" if ours else _digest(handler.model),
    }  # fmt: skip
    digest = hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()[:32]
    return Path(directory, "packages", digest)


def find(folder: Path, model: nn.Module, kind: type[Kept]) -> Kept | None:
    """Load the libraries of a folder; None if there are none, or if they are damaged."""
    try:
        description = msgspec.json.decode((folder / _DESCRIPTION).read_bytes(), type=Description)
        packages = kind(folder, description, model)
        os.utime(folder)
    except Exception:  # noqa: BLE001 - torch raises anything for a library that is damaged, or another torch's
        return None
    return packages


def keep(folder: Path, make: Callable[[Path], tuple[Description, Kept]]) -> Kept:
    """Make libraries and keep them in a folder.

    Args:
        make: writes the libraries into a folder.

    Raises:
        Exception: what `make` raises.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_unused(folder.parent)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder.parent))
    try:
        description, packages = make(draft)
        (draft / _DESCRIPTION).write_bytes(msgspec.json.format(msgspec.json.encode(description)))
        with contextlib.suppress(OSError):  # another worker has been faster
            draft.rename(folder)
        return packages
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # mapped libraries stay mapped


def _remove_unused(directory: Path) -> None:
    oldest = time.time() - UNUSED
    for folder in directory.iterdir():
        with contextlib.suppress(OSError):
            if folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)


def _code(model: nn.Module, model_dir: Path) -> str:
    """Return a digest of the marks of the files that define the model, outside the archive and torch."""
    tops = {type(module).__module__.partition(".")[0] for module in model.modules()} - set(_OURS)
    marks = set()
    for name, module in sys.modules.copy().items():
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] not in tops or file is None or Path(file).is_relative_to(model_dir):
            continue
        with contextlib.suppress(OSError):
            status = os.stat(file)
            marks.add(f"{file} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(sorted(marks)).encode()).hexdigest()


def _digest(model: nn.Module) -> str:
    """Return a digest of all weights."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}\n".encode())
        digest.update(value.detach().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
