"""Load a model from an archive's files.

    model file + weights     eager: the file's one module class, with a state_dict
    .pt                      TorchScript
    .pt2                     torch.export, or compiled by AOTInductor: native code for one kind of machine
    .so                      AOTInductor's former format, as long as torch loads it
    .onnx                    ONNX, where onnxruntime is installed

Weights are read with `weights_only=True`, which runs no code from the file, unless `model-config.yaml` sets
`weightsOnly: false`.
"""

import os
import pickle
import pickletools
import re
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tsctl.handlers.builtin.support.batches import module_of
from tsctl.handlers.builtin.support.onnx import load_session
from tsctl.handlers.builtin.support.weights import moved
from tsctl.handlers.requests.gpu_context import is_machines
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.sdk.loader import classes_of, import_file

_LONGEST = 1024 * 1024  # bytes of the pickle that are read
WAYS = (
    "save `model.state_dict()` and give the file of the model's class beside it, or save a file that holds the whole"
    " model: TorchScript (`.pt`) or torch.export (`.pt2`)"
)


def refusal_of(path: Path) -> str:
    """Return the sentence on a file that `torch.save` wrote and that is no model by itself; empty for other files."""
    saved = first_class(path)
    if not saved:
        return ""
    if is_weights(saved):
        return f"`{path.name}` holds weights without a model, as `torch.save(model.state_dict())` writes: {WAYS}"
    return f"`{path.name}` holds a pickled object of class `{saved}`, as `torch.save(model)` writes: {WAYS}"


def is_weights(saved: str) -> bool:
    """Return whether the first class of a file is one that a `state_dict` begins with."""
    return saved == "collections.OrderedDict" or saved.startswith(("torch._utils.", "torch.FloatStorage"))


def first_class(path: Path) -> str:
    """Return the first class that the pickle of a file of `torch.save` names; empty for any other file."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if any(name.endswith("/constants.pkl") for name in names):
                return ""  # TorchScript
            inside = next((name for name in names if name.count("/") == 1 and name.endswith("/data.pkl")), None)
            if inside is None:
                return ""
            with archive.open(inside) as file:
                for code, argument, _ in pickletools.genops(file.read(_LONGEST)):
                    if code.name == "GLOBAL" and isinstance(argument, str):
                        return argument.replace(" ", ".", 1)
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return ""  # torch reports the error
    return ""


_UNKNOWN_OPERATOR = re.compile(r"Unknown builtin op: (?P<operator>(?P<library>\w+)::[\w.]*\w)")
SCRIPT = "__main__."  # before the names of classes that a script defines; see runtime/compat.py


def load_file(weights_path: Path, device: torch.device) -> Any:
    """Load a file that holds a whole model, ready for inference on `device`.

    Raises:
        HandlerError: the file holds none, or one that cannot be loaded here.
    """
    refusal = refusal_of(weights_path)
    if refusal:
        raise HandlerError(refusal)
    match weights_path.suffix:
        case ".pt":
            return _load_torchscript(weights_path, device).eval()
        case ".pt2" if is_compiled_package(weights_path):
            with _refused(f"`{weights_path.name}` is not an AOTInductor package for this machine"), _unpacked(device):
                from torch._inductor import aoti_load_package

                return aoti_load_package(str(weights_path), device_index=-1 if device.index is None else device.index)
        case ".pt2":
            with _refused(f"`{weights_path.name}` is not a torch.export file"):
                # An exported program has inference mode built in, and no `eval`.
                return moved(module_of(torch.export.load(str(weights_path))), device)
        case ".so":
            return _load_library(weights_path, device)
        case ".onnx":
            return load_session(weights_path, device)
        case suffix:
            raise HandlerError(
                f"`{weights_path.name}` cannot be loaded without a model file: only .pt (TorchScript), .pt2"
                f" (torch.export) and .onnx hold a whole model, and this is `{suffix or 'no suffix'}`"
            )


def _load_torchscript(path: Path, device: torch.device) -> Any:
    """Load a TorchScript file, whose operators may be torchvision's, too.

    Raises:
        HandlerError: it is none, or has an operator that no library in this process defines.
    """
    refused = _refused(f"`{path.name}` is not a TorchScript file; weights alone need a model file")
    with refused, warnings.catch_warnings():  # torch calls the format deprecated; the author has chosen it
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            # Not `moved`, though torch copies each tensor unpinned: `to` leaves those in main memory that are neither
            # parameters nor buffers, as a trace's constants. And so main memory never holds all.
            return torch.jit.load(str(path), map_location=device)
        except RuntimeError as error:
            unknown = _UNKNOWN_OPERATOR.search(str(error))
            if unknown is None:
                raise
        if unknown["library"] == "torchvision":
            from tsctl.handlers.builtin import torchvision_import  # noqa: F401 - defines its operators

            return torch.jit.load(str(path), map_location=device)
    raise HandlerError(
        f"`{path.name}` uses the operator `{unknown['operator']}`, which torch does not have: name a handler"
        " (`--handler`) that first imports the package which defines it, or calls `torch.ops.load_library` with its .so"
        " file, and is a subclass of `tsctl.handlers.builtin.BaseHandler`"
    )


def _load_library(path: Path, device: torch.device) -> Any:
    """Load a shared library that `torch._export.aot_compile` wrote; torch deprecates the format.

    Raises:
        HandlerError: this torch loads no such file, or not this one.
    """
    way = "compile the model anew, with `torch._inductor.aoti_compile_and_package`, which writes a .pt2 file"
    if not hasattr(torch._export, "aot_load"):
        raise HandlerError(f"torch {torch.__version__} loads no .so files, such as `{path.name}`: {way}")
    refused = _refused(f"`{path.name}` was not compiled by AOTInductor for this machine and this torch: {way}")
    with refused, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        if device.type != "cuda":
            return torch._export.aot_load(str(path), str(device))
        with torch.cuda.device(device):
            library = torch._export.aot_load(str(path), str(device))

    def run(*inputs: Any, **further: Any) -> Any:
        with torch.cuda.device(device):  # its kernels run on the current one, of whichever thread
            return library(*inputs, **further)

    return run


def is_compiled_package(path: Path) -> bool:
    """Return whether a `.pt2` file is AOTInductor's: an archive with such a folder (torch/export/pt2_archive)."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any("/data/aotinductor/" in f"/{name}" for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False  # torch.export.load reports the error


@contextmanager
def _unpacked(device: torch.device) -> Iterator[None]:
    """Remove the files that torch unpacks from a package; a killed worker would otherwise leave them in TMPDIR.

    On a GPU the files stay, because kernels are read from them when they first run.
    """
    if device.type != "cpu":
        yield
        return
    before = os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="tsctl-") as place:
        os.environ["TMPDIR"] = place
        try:
            yield
        finally:
            if before is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before


@contextmanager
def _refused(sentence: str) -> Iterator[None]:
    """Prefix torch's errors about a file with a sentence; those of the machine propagate."""
    try:
        yield
    except (RuntimeError, TypeError, zipfile.BadZipFile) as error:
        if is_machines(error):
            raise
        raise HandlerError(f"{sentence}: {str(error).strip()}") from error


def load_eager(model_file: Path, weights: Path | None, config: Mapping[str, Any]) -> nn.Module:
    """Make the model of a file's one class, in main memory, and load its weights.

    The class is a torch.nn.Module; or, as in TorchServe, the file's only one, and makes such a module.

    Raises:
        HandlerError: the file defines no model class or several, or the weights do not fit.
    """
    defined = classes_of(import_file(model_file))
    classes = [each for each in defined if issubclass(each, nn.Module)]
    if len(classes) > 1:  # ignore base classes of the model
        classes = [each for each in classes if not any(each in other.__mro__[1:] for other in classes)]
    named = ", ".join(each.__name__ for each in classes) or "none"
    if not classes and len(defined) == 1:
        classes = defined
    made = classes[0]() if len(classes) == 1 else None
    if not isinstance(made, nn.Module):
        raise HandlerError(f"{model_file.name} should define exactly one torch.nn.Module, and defines {named}")
    model: nn.Module = made
    if weights is not None:
        state = read_weights(weights, config, mapped=copies_weights(model))
        if isinstance(state, nn.Module):
            model = state
        else:
            with _refused(f"`{weights.name}` does not fit {model_file.name}"):
                model.load_state_dict(state)
    return model


def copies_weights(model: nn.Module) -> bool:
    """Return whether `load_state_dict` copies all values, as torch's own modules do.

    Then a file may be mapped while it is read. A class with its own ways may keep the tensors, and so the mapping of a
    file that may change.
    """
    return all(
        _is_torchs(type(module), "load_state_dict", "_load_from_state_dict", "set_extra_state")
        and not (module._load_state_dict_pre_hooks or module._load_state_dict_post_hooks)
        for module in model.modules()
    )


def _is_torchs(module_class: type[nn.Module], *names: str) -> bool:
    return all(str(getattr(module_class, name).__module__).startswith("torch.nn.") for name in names)


def read_weights(weights: Path, config: Mapping[str, Any], *, mapped: bool = False) -> Any:
    """Read a file written by `torch.save`; with `weights_only=True`, unless `config` sets `weightsOnly: false`.

    They are read into main memory, where the model is made: so they go to a GPU once, with the model.

    Args:
        mapped: tensors may be pages of the file, for a caller that copies them at once: the file may change later.

    Raises:
        HandlerError: the file would run code.
    """
    weights_only = config.get("weightsOnly", True)
    try:
        mapped = mapped and weights_only and zipfile.is_zipfile(weights)  # torch maps no file of its oldest format
        return torch.load(weights, map_location="cpu", weights_only=weights_only, mmap=mapped)
    except AttributeError:
        saved = first_class(weights)
        if weights_only or not saved.startswith(SCRIPT):
            raise
        raise HandlerError(
            f"`{weights.name}` names the class `{saved}` of the script that saved it, and no file of the model defines"
            f" `{saved.removeprefix(SCRIPT)}`: put the class into the model's file"
        ) from None
    except pickle.UnpicklingError as error:
        if not weights_only:
            raise
        saved = first_class(weights)
        if saved and not is_weights(saved):
            raise HandlerError(
                f"`{weights.name}` holds a pickled object of class `{saved}`, as `torch.save(model)` writes, and"
                f" loading it would run code from it: {WAYS}. If you trust the archive, `weightsOnly: false` in its"
                " model-config.yaml loads it as it is"
            ) from None
        raise HandlerError(
            f"`{weights.name}` holds more than tensors, and loading it would run code from it. If you trust the"
            f" archive, put `weightsOnly: false` into its model-config.yaml. ({str(error).splitlines()[0]})"
        ) from error
