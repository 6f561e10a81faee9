"""The pins of a registration: the version and the SHA-256 that its archive must have.

A file that is served in place has no version of its own: it gets the one that is asked for. Two versions of a model
cannot be one file: the workers of the first are started anew some day, and would then run what the second wrote.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from tsctl.daemon.core.errors import BadRequest, InvalidModel
from tsctl.daemon.marfile import Manifest
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.targets import is_bare, split_function

_SHA256 = re.compile(r"[0-9a-f]{64}")


def sha256_pin(text: str | None) -> str:
    """Return the pin in lower case; empty for None, which is no pin.

    Raises:
        BadRequest: the text is no SHA-256, or empty: a variable that was not set would pin nothing.
    """
    if text is None:
        return ""
    pin = text.lower()
    if not _SHA256.fullmatch(pin):
        raise BadRequest(f"sha256 is {text[:100]!r}; expected 64 hexadecimal digits, as `sha256sum FILE` prints them.")
    return pin


def check_version(request: Registration, manifest: Manifest) -> None:
    """Raise InvalidModel if the archive contains another version than the registration asks for."""
    wanted, found = request.model_version, manifest.model_version
    if wanted is not None and wanted != found:
        raise InvalidModel(f"The archive {request.url} contains version {found}; version {wanted} was asked for.")


def check_own_file(request: Registration, manifest: Manifest, directory: Path, others: Iterable[ModelVersion]) -> None:
    """Raise InvalidModel if another version of the model is served in place from the file that is to be registered.

    Args:
        directory: in which the file is.
        others: the registered versions.
    """
    if not is_bare(request.url):
        return
    file = _file_of(request.url)
    for other in others:
        same = other.source.directory == directory and _file_of(other.source.url) == file
        if other.name == manifest.model_name and other.version != manifest.model_version and same:
            raise InvalidModel(
                f"Version {other.version} of {other.name} is served from `{directory / file}`, too: its workers would"
                " run what is in the file now as soon as one is replaced. Give each version a file of its own, or pack"
                " it with `tsctl archive`."
            )


def _file_of(url: str) -> str:
    return Path(split_function(url)[0]).name
