"""Read a target: what is to be served, inferred from its name and its files.

handler.py, handler.py:function   a handler; the files beside it are its model's
module:attribute                  a handler in an installed package, or below the working directory
model.pt, model.pt2, model.onnx   a whole model, served by `base_handler`
weights.pth                       weights, with the one .py file beside them that defines their torch.nn.Module
a directory                       an unpacked archive; else the handler in it, or the model
model.mar, https://…/model.mar    an archive, which has a manifest of its own
"""

import os
import re
from dataclasses import replace
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

from tsctl.daemon.marfile import MANIFEST
from tsctl.daemon.targets.bare import (
    ARCHIVE_SUFFIXES,
    BARE_SUFFIXES,
    MODEL_SUFFIXES,
    PLAIN_NAMES,
    VERSION,
    ServeTarget,
    bare_target,
    files_beside,
    is_of_torch,
    is_torchscript,
    is_url,
    model_name_of,
    read_handler,
    split_function,
)
from tsctl.daemon.targets.source import TargetError, check_syntax, is_handler

KINDS = "a handler (.py), a model (.pt, .pt2, .onnx, .pth), an archive (.mar), a directory, or module:attribute"
HANDLER = "handler.py"
MODULE = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<attribute>[^\W\d]\w*)")


def checked_target(text: str, directory: Path) -> ServeTarget:
    """Read a target, and check the syntax of its Python file; raise as `read_target`."""
    target = read_target(text, directory)
    if target.kind == "handler" and target.path is not None:
        check_syntax(target.path)
    return target


def read_target(text: str, directory: Path) -> ServeTarget:
    """Read a target as a user typed it.

    Args:
        directory: the user's working directory.

    Raises:
        TargetError: there is nothing there, or it cannot be served; the message names it, the hint the remedy.
    """
    if is_url(text):
        return _read_url(text)
    name, function = split_function(text)
    path = directory / os.path.expanduser(name)  # which leaves `~nobody` as it is, where Path raises
    try:
        if path.is_dir():
            return _read_directory(path.resolve())
        found = path.is_file()
    except (OSError, ValueError, RuntimeError):  # a name too long, or with a zero byte
        found = False
    if found:
        # A link stays, as the name that the user chose; the daemon takes no path with `..`.
        return _read_file(path.resolve() if ".." in path.parts else path.absolute(), function)
    module = MODULE.fullmatch(text)
    if module is not None:
        return _read_module(module["module"], module["attribute"], directory)
    raise _missing(text, path)


def _read_url(url: str) -> ServeTarget:
    from tsctl.daemon.server.extensions import EXTENSIONS  # here: who only reads files needs no table of them

    schemes = [f"{name}://" for name in ("http", "https", *(name for each in EXTENSIONS for name in each.schemes))]
    if not url.lower().startswith(tuple(schemes)):
        raise TargetError(f"`{url}` has a scheme that is not served", f"name a file, or {', '.join(schemes)}")
    if url.lower().endswith(BARE_SUFFIXES):
        raise TargetError(f"`{url}` is a single file, and only archives are served from URLs", "download it first")
    return ServeTarget(kind="url", url=url)


def _read_file(file: Path, function: str) -> ServeTarget:
    if file.suffix in BARE_SUFFIXES:
        return bare_target(file, function)
    if file.suffix != ".mar" and is_of_torch(file):  # thousands of archives are looked into once
        raise _misnamed(file)
    if file.name.endswith(ARCHIVE_SUFFIXES) or _is_archive(file):
        return ServeTarget(kind="archive", url=str(file), path=file)
    suffix = f"has the suffix `{file.suffix}`" if file.suffix else "has no suffix"
    raise TargetError(f"`{file.name}` {suffix} and cannot be served", f"name {KINDS}")


def _misnamed(file: Path) -> TargetError:
    """Return the error on a file of torch whose suffix does not say what it is: `epoch3.ckpt`, `pytorch_model.bin`."""
    if is_torchscript(file):
        return TargetError(f"`{file.name}` is a TorchScript file", f"rename it to `{file.stem}.pt`")
    stem = file.stem.removesuffix(".pth").removesuffix(".pt")  # checkpoint.pth.tar
    return TargetError(
        f"`{file.name}` holds what `torch.save` wrote, such as weights or a checkpoint, and no whole model",
        f"save `model.state_dict()` as `{stem}.pth`, with the .py file of its class beside it, or name a handler"
        " (.py) that loads the file",
    )


def _is_archive(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(4)[:2] in (b"PK", b"\x1f\x8b")
    except OSError as error:
        raise TargetError(f"cannot read `{file}`: {error.strerror}") from None


def _read_directory(directory: Path) -> ServeTarget:
    """Read a directory: an unpacked archive, else its `handler.py`, its only handler, model, or Python file.

    Raises:
        TargetError: the directory holds nothing to serve, or more than one thing.
    """
    try:
        inside = [each for each in sorted(directory.iterdir()) if not each.name.startswith(".")]
    except OSError as error:
        raise TargetError(f"cannot read `{directory}`: {error.strerror}") from None
    if len(inside) == 1 and (inside[0] / MANIFEST).is_file():  # one directory within, as in a tgz archive
        directory = inside[0]
    if (directory / MANIFEST).is_file() or (directory / "WAR-INF").is_dir():
        return ServeTarget(kind="archive", url=str(directory), path=directory)
    files = [each for each in inside if each.is_file()]
    models = [each for each in files if each.suffix in MODEL_SUFFIXES]
    python = [each for each in files if each.suffix == ".py"]
    handlers = [each for each in python if each.name == HANDLER] or [each for each in python if is_handler(each)]
    for candidates in (handlers, models, python):
        if len(candidates) == 1:
            target = bare_target(candidates[0])
            return replace(target, model_name=model_name_of(directory.name))
        if candidates:
            names = ", ".join(f"`{each.name}`" for each in candidates[:4])
            more = ", …" if len(candidates) > 4 else ""
            raise TargetError(
                f"`{directory.name}` holds {len(candidates)} files to serve: {names}{more}", "name one of them"
            )
    raise TargetError(f"the directory `{directory}` holds nothing to serve", f"name {KINDS}")


def _read_module(module: str, attribute: str, directory: Path) -> ServeTarget:
    """Read `module:attribute`; the module is not imported, nor is a package above it.

    Raises:
        TargetError: there is no such module.
    """
    parts = module.split(".")
    file = directory.joinpath(*parts[:-1], f"{parts[-1]}.py")
    if len(parts) == 1 and file.is_file():
        return read_handler(file.absolute(), attribute)
    local = file.is_file() or directory.joinpath(*parts, "__init__.py").is_file()
    if not local and not _installed(parts[0]):
        raise TargetError(
            f"no module `{module}`: neither below `{directory}` nor installed",
            "name a file such as `handler.py:function`, or install the package",
        )
    named = attribute if attribute not in PLAIN_NAMES else parts[-1]
    return ServeTarget(
        kind="module",
        url=str(directory.absolute()),
        path=directory.absolute(),
        model_name=model_name_of(named),
        version=VERSION,
        handler=f"{module}:{attribute}",
    )


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _missing(text: str, path: Path) -> TargetError:
    folder = path.parent
    if not folder.is_dir():
        return TargetError(f"no directory `{folder}`", f"name {KINDS}")
    names = [each.name for each in files_beside(path)] + [each.name for each in folder.iterdir() if each.is_dir()]
    close = get_close_matches(path.name, names, n=1, cutoff=0.75)
    return TargetError(f"no file `{text}`", f"did you mean `{close[0]}`?" if close else f"name {KINDS}")
