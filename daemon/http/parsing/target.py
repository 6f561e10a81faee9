"""Checks of a request's host and target."""

import re

from tsctl.daemon.core.errors import BadRequest

# RFC 3986, section 3.2.2: a name, an address, or an IPv6 address in brackets; then a port, which may be empty.
_AUTHORITY = r"(?:\[[0-9A-Za-z:.%_~\-]+\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?"
_HOST = re.compile(_AUTHORITY)
_ABSOLUTE = re.compile(rf"https?://(?![:/?]|$){_AUTHORITY}(?:[/?].*)?", re.IGNORECASE)


def check_host(host: str) -> None:
    """Check that a Host header names a host.

    Raises:
        BadRequest: the value is no host.
    """
    if not _HOST.fullmatch(host):
        raise BadRequest("Invalid Host header; expected HOST or HOST:PORT.")


def check_target(target: str, method: bytes) -> None:
    """Check that a request target is a path or an address (RFC 9112, section 3.2).

    Raises:
        BadRequest: the target is neither.
    """
    for_all = target == "*" and method == b"OPTIONS"
    if "#" in target or not (for_all or _ABSOLUTE.fullmatch(target)):
        raise BadRequest("Invalid request target; expected a path or an http address.")
