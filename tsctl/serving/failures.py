"""A model that does not load, told in at most five lines: the line of the user's file, the error, the remedy."""

import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from tsctl.daemon.targets import ServeTarget
from tsctl.errors import CliError

# The names of modules, and of the packages that have them.
PACKAGES = {
    "bs4": "beautifulsoup4", "cv2": "opencv-python-headless", "dateutil": "python-dateutil", "docx": "python-docx",
    "dotenv": "python-dotenv", "faiss": "faiss-cpu", "fitz": "PyMuPDF", "jwt": "PyJWT", "PIL": "pillow",
    "sentence_transformers": "sentence-transformers", "skimage": "scikit-image", "sklearn": "scikit-learn",
    "whisper": "openai-whisper", "yaml": "PyYAML",
} | {
    name: name
    for name in (
        "accelerate", "diffusers", "einops", "librosa", "lightning", "magika", "numpy", "onnx", "onnxruntime",
        "pandas", "peft", "pydantic", "requests", "safetensors", "scipy", "soundfile", "spacy", "tiktoken", "timm",
        "tokenizers", "torch", "torchaudio", "torchvision", "transformers", "ultralytics",
    )
}  # fmt: skip
_RELATIVE = re.compile(r"attempted relative import (?:with no known parent package|beyond top-level package)")
_MISSING = re.compile(r"No module named '(?P<name>[^']+)'(?P<hidden>; '[^']+' is not a package)?")
_CLOSE = 0.8
_CONFLICT = "ConflictStatusException"  # the kind of the daemon's error


def hint_for_import(error: str, folder: Path | None) -> str:
    """The remedy for a module that is not found: a file of the user's own, a known package, or a question.

    A name that is imported is seldom the name of what is installed, and anybody may own that name: nothing that is not
    known is proposed to pip.

    Args:
        folder: the folder of the user's files; None for an archive, or if there is none.
    """
    if _RELATIVE.search(error):
        above = f", or serve `{folder.name}.MODULE:FUNCTION` from `{folder.parent}`" if folder is not None else ""
        return f"a file served alone is in no package: write `from helper import …` instead of `from .helper …`{above}"
    found = _MISSING.search(error)
    if found is None:
        return ""
    name, _, inner = found["name"].partition(".")
    if found["hidden"]:
        return f"a file `{name}.py` of yours hides the package `{name}`: rename it"
    if inner:
        return f"`{name}` was found, and has no module `{found['name']}`: mend the import, or try another version of it"
    own = None if folder is None else _own_module(name, folder)
    if own is not None:
        return own
    if name in PACKAGES:
        return f"install the package: `{sys.executable} -m pip install {PACKAGES[name]}`"
    near = get_close_matches(name, PACKAGES, n=1, cutoff=_CLOSE)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"is `{name}` yours? Put its file beside the handler; else install the package that has it"


def _own_module(name: str, folder: Path) -> str | None:
    """Return the sentence on a module of the user's; None if there is no file of this name, or a similar one."""
    if folder.name == name:
        return f"`{name}` is the folder of these files: serve `{name}.MODULE:FUNCTION` from the folder above it"
    for place in (folder.parent, *sorted(_folders(folder))):
        for file in (place / f"{name}.py", place / name / "__init__.py"):
            if file.is_file():
                return f"`{file}` is not beside the handler: move it there, or put its folder into PYTHONPATH"
    beside = [each.stem for each in _entries(folder) if each.suffix == ".py"] + [each.name for each in _folders(folder)]
    near = get_close_matches(name, beside, n=1, cutoff=_CLOSE)
    return f"did you mean `{near[0]}`, which is beside it?" if near else None


def _folders(folder: Path) -> list[Path]:
    return [each for each in _entries(folder) if each.is_dir() and each.name.isidentifier()]


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


_FRAME = re.compile(
    r'^ *(?:File )?"?(?P<file>[^"\n]+?\.py)"?, line (?P<line>\d+)(?:, in (?P<function>\S+))?$', re.MULTILINE
)
_ERROR = re.compile(r"^(?P<error>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning)\b.*)$", re.MULTILINE)
_PLAIN = ("SyntaxError", "IndentationError", "TabError", "ModuleNotFoundError", "ImportError")
_MOST_FRAMES = 6  # named in the path to the error


class Failure(NamedTuple):
    """A failure for people: `message`, then `details` verbatim, then `hint`."""

    message: str
    hint: str
    details: str

    @property
    def error(self) -> CliError:
        return CliError(self.message, self.hint, self.details)


def folder_of(target: ServeTarget) -> Path | None:
    """Return the folder of the user's files; None for an archive."""
    return None if target.path is None or not target.inferred else target.path.parent


def explain(message: str, details: str, folder: Path | None = None, target: str = "") -> Failure:
    """Explain the daemon's answer to a registration that failed.

    Args:
        message: the first line of the answer.
        details: the rest: a traceback that begins at the user's file, the last lines of a worker, or nothing.
        folder: the folder of the user's files, which tells them from those of libraries; None counts every file.
        target: the target as it was typed, for the command that shows the whole traceback; empty for none.

    Returns:
        The message has the last line of the user's that ran, and the details have its text, the calls that led
        there, and the next line of the error's own text. Errors of syntax and imports need no calls.
    """
    reason = message.partition(": ")[2] if message.startswith("Failed to start workers") else ""
    reason = (reason.partition(": ")[2] or reason).removeprefix("HandlerError: ")  # after `version: 1.0`
    frames = list(_FRAME.finditer(details))
    errors = list(_ERROR.finditer(details))
    error = errors[-1]["error"] if errors else reason or message
    own = [frame for frame in frames if folder is None or (folder / frame["file"]).is_file()]
    if not own:
        rest = "" if reason and reason in details and len(details.splitlines()) == 1 else details
        return Failure(reason or message, hint_for_import(error, folder), rest)
    last = own[-1]
    text = details[last.end() :].lstrip("\n").partition("\n")[0].strip()
    lines = [text] if text and not text.startswith(error) else []
    whole = ""
    if len(frames) > 1 and not error.startswith(_PLAIN):
        lines.append(_calls(frames))
        whole = f"`tsctl check {target}` shows the whole traceback" if target else ""
    if errors:
        lines += [line.strip() for line in details[errors[-1].end() :].strip().splitlines()[:1]]
    where = f"{_name(last['file'])}, line {last['line']}"
    return Failure(
        f"{where}: {error}", hint_for_import(error, folder) or whole, "\n".join(f"    {line}" for line in lines)
    )


def _calls(frames: Sequence[re.Match[str]]) -> str:
    """Return the calls that led to an error in one line: `load (h.py:3) → read (files.py:9)`."""
    named = [f"{frame['function'] or '<module>'} ({_name(frame['file'])}:{frame['line']})" for frame in frames]
    if len(named) > _MOST_FRAMES:
        named[1 : len(named) - _MOST_FRAMES + 2] = ["…"]
    return " → ".join(named)


def _name(file: str) -> str:
    return file.rpartition("/")[2]


def is_taken(error: CliError) -> bool:
    """Return whether a registration was refused because the version is registered."""
    # The kind, too: the message of a model that does not load quotes the user's own error.
    return error.kind == _CONFLICT and "already registered" in error.message


def explained(error: CliError, name: str, folder: Path | None = None, target: str = "") -> CliError:
    """Return an error of the registration of `name` with its explanation; one with a hint of its own stays.

    Args:
        folder, target: as in `explain`.
    """
    if error.hint:
        return error
    if is_taken(error):
        message = error.message.partition(" Use another model_name")[0]  # the remedy of the API
        return CliError(message, f"choose a name with `--name`, or `tsctl unregister {name}`")
    return explain(error.message, error.details, folder, target).error
