"""Predict the imports of a model's workers from the model's files, read without running them.

A wrong guess costs time or memory, never an answer: a worker imports the modules that its template has not imported.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tsctl.handlers import wire
from tsctl.handlers.names import BUILT_IN, split_handler

_LONGEST = 1024 * 1024  # bytes of a file that are read
_TORCH = re.compile(rb"\b(torch|ts|handlers|transformers)\b")
_VISION = re.compile(rb"\b(torchvision|image_classifier|object_detector|image_segmenter)\b")
_WITH_TORCHVISION = ("image_classifier", "object_detector", "image_segmenter")


class Needs(NamedTuple):
    torch: bool
    torchvision: bool


def is_ours(handler: str, model_dir: Path) -> bool:
    """Return whether the handler is a built-in one, by the loader's rule: a file of that name comes first."""
    name, _ = split_handler(handler)
    return name in BUILT_IN and not (model_dir / f"{name}.py").is_file()


def fingerprint(load: wire.Load) -> str:
    """Return a digest of the files that a worker would load now: files that are served in place may be written anew."""
    digest = hashlib.sha256(wire.encode(load))
    with contextlib.suppress(OSError), os.scandir(load.model_dir) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.is_file():  # a worker that imports writes into __pycache__
                status = entry.stat()
                digest.update(f"{entry.name} {status.st_size} {status.st_mtime_ns} {status.st_ino}\n".encode())
    return digest.hexdigest()[:12]


def needs_of(handler: str, model_dir: Path) -> Needs:
    """Return the likely imports of this model's workers, from its handler and Python files."""
    return needs_in(handler, {file.name: partial(_text_of, file) for file in sorted(model_dir.glob("*.py"))})


def _text_of(file: Path) -> bytes:
    with contextlib.suppress(OSError), file.open("rb") as opened:
        return opened.read(_LONGEST)
    return b""


def needs_in(handler: str, files: Mapping[str, Callable[[], bytes]]) -> Needs:
    """Return the likely imports of the workers of an archive.

    Args:
        files: name of each Python file → reads the beginning of its content.
    """
    name, _ = split_handler(handler)
    ours = name in BUILT_IN and f"{name}.py" not in files
    torch, vision = ours, ours and name in _WITH_TORCHVISION
    for read in files.values():
        if vision:
            break
        text = read()
        torch = torch or _TORCH.search(text) is not None
        vision = vision or _VISION.search(text) is not None
    return Needs(torch or vision, vision)
