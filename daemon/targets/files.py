"""File names: which suffix is served as it is, which function a name ends with, and the model name that follows."""

import re
import unicodedata
import zipfile
from pathlib import Path

from tsctl.daemon.marfile import MANIFEST, NAME


class TargetError(Exception):
    """A target cannot be served.

    Attributes:
        hint: the remedy, as the end of a message or below one.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


WEIGHTS = ".pth"
MODEL_SUFFIXES = (".pt", ".pt2", ".onnx", WEIGHTS)
BARE_SUFFIXES = (".py", *MODEL_SUFFIXES)
ARCHIVE_SUFFIXES = (".mar", ".tar.gz", ".tgz", ".model")
_FUNCTION = re.compile(r"(?P<file>.+\.py):(?P<function>[^\W\d]\w*)", re.DOTALL)
_SAVED_BEFORE_ZIP = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # torch.save of torch before 1.6
_UNNAMED = "model"
_OF_ANY = ("app", "handler", "main", "model")  # stems of files that say nothing about their model
_LONGEST_NAME = 64  # characters of an inferred name


def split_function(text: str) -> tuple[str, str]:
    """Split `handler.py:function` into file and function; the function is empty if the text names none."""
    found = _FUNCTION.fullmatch(text)
    return (found["file"], found["function"]) if found else (text, "")


def is_bare(text: str) -> bool:
    """Return whether a name is that of a file which is served without an archive; `:function` may follow."""
    return split_function(text)[0].endswith(BARE_SUFFIXES)


def model_name_of(stem: str) -> str:
    """Return a valid model name for any file name without its suffix: `my net (1)` becomes `my-net-1`."""
    plain = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9_.]+", "-", plain).strip("-_.")[:_LONGEST_NAME].rstrip("-_.")
    return name if NAME.fullmatch(name) else _UNNAMED


def name_of_file(file: Path) -> str:
    """Return the model name of a file: of its stem, or of its folder where every model's file is called so."""
    folder = model_name_of(file.parent.name)
    return folder if file.stem in _OF_ANY and folder not in (*_OF_ANY, _UNNAMED) else model_name_of(file.stem)


def is_of_torch(file: Path) -> bool:
    """Return whether a file is one that torch writes: by `torch.save`, or TorchScript; whatever its name."""
    try:
        with file.open("rb") as opened:
            if opened.read(len(_SAVED_BEFORE_ZIP)) == _SAVED_BEFORE_ZIP:
                return True
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError):
        return False
    return MANIFEST not in names and any(name.count("/") == 1 and name.endswith("/data.pkl") for name in names)


def is_torchscript(file: Path) -> bool:
    """Return whether a `.pt` file is TorchScript rather than weights, which `torch.save` writes.

    Both are zip files; only TorchScript has code and constants. A damaged file counts as TorchScript, and its loader
    reports the damage.
    """
    try:
        with file.open("rb") as opened:
            if opened.read(2) != b"PK":
                return False  # torch.save of torch before 1.6
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError):
        return True
    return any(name.endswith("/constants.pkl") or "/code/" in name for name in names)
