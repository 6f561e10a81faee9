"""The content of a file of `torch.save`, read from its first bytes without loading it."""

import pickletools
import zipfile
from pathlib import Path

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
