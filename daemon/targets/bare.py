"""A single file that is served in place: a handler, or a model with a built-in handler; more files may be beside it.

Its name says what it is: which suffix is served as it is, which function follows, and the model name.
"""

import re
import unicodedata
import zipfile
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tsctl.daemon.marfile import CHUNK, MANIFEST, NAME, open_zip
from tsctl.daemon.targets.source import LARGEST, TargetError, module_classes, parse, top_names

CONFIG = "model-config.yaml"
BASE_HANDLER = "base_handler"
VERSION = "1.0"
PLAIN_NAMES = ("handle", "predict")  # functions whose name says nothing about their model
FALLBACK_BATCH_SIZE = 8  # of built-in handlers, where neither the user nor model-config.yaml says one
WEIGHTS = ".pth"
MODEL_SUFFIXES = (".pt", ".pt2", ".onnx", WEIGHTS)
BARE_SUFFIXES = (".py", *MODEL_SUFFIXES)
ARCHIVE_SUFFIXES = (".mar", ".tar.gz", ".tgz", ".model")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
_FUNCTION = re.compile(r"(?P<file>.+\.py):(?P<function>[^\W\d]\w*)", re.DOTALL)
SAVED_BEFORE_ZIP = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # torch.save of torch before 1.6
DIRECTORY_OF_TORCH = 16 * CHUNK  # bytes of a zip's directory: torch writes about 70 for a tensor
_UNNAMED = "model"
_OF_ANY = ("app", "handler", "main", "model")  # stems of files that say nothing about their model
_LONGEST_NAME = 64  # characters of an inferred name


def is_url(text: str) -> bool:
    """Return whether a text is a URL, of whatever scheme, and no name of a file."""
    return _URL.match(text) is not None


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
            if opened.read(len(SAVED_BEFORE_ZIP)) == SAVED_BEFORE_ZIP:
                return True
        with open_zip(file, DIRECTORY_OF_TORCH) as archive:
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
        with open_zip(file, DIRECTORY_OF_TORCH) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError):
        return True
    return any(name.endswith("/constants.pkl") or "/code/" in name for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeTarget:
    """Something that can be served.

    Attributes:
        kind: `handler`, `model`, `module`, `archive` or `url`.
        url: the parameter of the registration: an absolute path, which `:function` may follow, or a URL.
        path: the file, or the directory; None for a URL.
        model_name, version, handler: inferred; empty if an archive's manifest names them.
        model_file, serialized_file, config_file: names of files beside `path`, as in a manifest.
    """

    kind: str
    url: str
    path: Path | None = None
    model_name: str = ""
    version: str = ""
    handler: str = ""
    model_file: str | None = None
    serialized_file: str | None = None
    config_file: str | None = None

    @property
    def inferred(self) -> bool:
        """Return whether the target has no manifest of its own."""
        return self.kind not in ("archive", "url")

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the target's registration; an option of the user wins over each."""
        given: dict[str, Any] = {"url": self.url, "model_name": self.model_name or None}
        if self.inferred:
            given["fallback_batch_size"] = FALLBACK_BATCH_SIZE
        if self.kind != "handler":  # the daemon infers a handler file's own
            given["handler"] = self.handler or None
        return given

    def manifest(self) -> dict[str, Any]:
        """Return the manifest that an archive of this target would have."""
        files = {
            "modelFile": self.model_file, "serializedFile": self.serialized_file, "configFile": self.config_file,
        }  # fmt: skip
        named = {key: name for key, name in files.items() if name is not None}
        model = {"modelName": self.model_name, "modelVersion": self.version, "handler": self.handler, **named}
        return {"runtime": "python", "model": model}


def bare_target(file: Path, function: str = "") -> ServeTarget:
    """Read a file that is served in place: a handler or a model.

    Raises:
        TargetError: the file cannot be served.
    """
    if file.suffix == ".py":
        return read_handler(file, function)
    return _read_model(file)


def read_handler(file: Path, function: str) -> ServeTarget:
    if ":" in file.name:
        raise TargetError(f"`{file.name}` has a colon in its name, which separates a function", "rename the file")
    tree = parse(file) if function else None
    names = [] if tree is None else top_names(tree)
    if tree is not None and function not in names and "*" not in names:
        close = get_close_matches(function, names, n=1)
        raise TargetError(
            f"{file.name} defines no `{function}`", f"did you mean `{file.name}:{close[0]}`?" if close else ""
        )
    named = function and function not in PLAIN_NAMES
    return ServeTarget(
        kind="handler",
        url=f"{file}:{function}" if function else str(file),
        path=file,
        model_name=model_name_of(function) if named else name_of_file(file),
        version=VERSION,
        handler=f"{file.name}:{function}" if function else file.name,
        **_files_of_handler(file),
    )


def _files_of_handler(handler: Path) -> dict[str, str | None]:
    """Return the model's files beside a handler, where there is exactly one model."""
    files: dict[str, str | None] = {"config_file": _config_beside(handler)}
    models = [each for each in files_beside(handler) if each.suffix in MODEL_SUFFIXES]
    if len(models) == 1:
        files["serialized_file"] = models[0].name
        if _needs_model_file(models[0]):
            candidates = _model_files(models[0])
            files["model_file"] = candidates[0].name if len(candidates) == 1 else None
    return files


def _read_model(file: Path) -> ServeTarget:
    model_file = None
    if _is_empty(file):
        raise TargetError(f"`{file.name}` is empty", "copy or save the model again")
    if file.suffix == WEIGHTS and is_torchscript(file):
        raise TargetError(f"`{file.name}` is a TorchScript file", f"rename it to `{file.stem}.pt`")
    if _needs_model_file(file):
        candidates = _model_files(file)
        if not candidates:
            raise TargetError(
                f"`{file.name}` holds weights, and no .py file beside it defines one torch.nn.Module class for them",
                f"write the class into `{file.stem}.py`, or save the whole model: torch.jit.script(model).save(…)",
            )
        if len(candidates) > 1:
            names = ", ".join(f"`{each.name}`" for each in candidates[:4])
            raise TargetError(
                f"`{file.name}` holds weights of a class in one of {names}", f"rename that file to `{file.stem}.py`"
            )
        model_file = candidates[0].name
    return ServeTarget(
        kind="model",
        url=str(file),
        path=file,
        model_name=name_of_file(file),
        version=VERSION,
        handler=BASE_HANDLER,
        model_file=model_file,
        serialized_file=file.name,
        config_file=_config_beside(file),
    )


def _is_empty(file: Path) -> bool:
    try:
        return not file.stat().st_size
    except OSError:  # its loader tells that
        return False


def _needs_model_file(model: Path) -> bool:
    return model.suffix == WEIGHTS or (model.suffix == ".pt" and not is_torchscript(model))


def _model_files(weights: Path) -> list[Path]:
    """Return the files beside weights that define one module class: that of the same name, else `model.py`, else all.

    At most `LARGEST` bytes are read.
    """
    read, found = 0, []
    preferred = [weights.with_suffix(".py"), weights.with_name("model.py")]
    files = [each for each in preferred if each.is_file()]
    files += [each for each in files_beside(weights) if each.suffix == ".py" and each not in files]
    for file in files:
        read += file.stat().st_size
        if read > LARGEST:
            break
        if len(module_classes(file)) == 1:
            if file in preferred:
                return [file]
            found.append(file)
    return found


def files_beside(file: Path) -> list[Path]:
    """Return the files of a file's folder, sorted by name; hidden ones left out."""
    try:
        return sorted(each for each in file.parent.iterdir() if not each.name.startswith(".") and each.is_file())
    except OSError:  # a folder that may be entered but not listed
        return [file]


def _config_beside(file: Path) -> str | None:
    return CONFIG if file.with_name(CONFIG).is_file() else None
