"""The pins of a registration: the version and the SHA-256 that its archive must have."""

import re

from tsctl.daemon.core.errors import BadRequest, InvalidModel
from tsctl.daemon.marfile import Manifest
from tsctl.daemon.models.request import Registration

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
