"""What a request is for, as it says so: the host and the target of its first line."""

import re

from daemon.errors import BadRequest

# RFC 3986, section 3.2.2: a name, an address, or an address of IPv6 in brackets; then a port. It may be empty.
_AUTHORITY = r"(?:\[[0-9A-Za-z:.%_~\-]+\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?"
_HOST = re.compile(_AUTHORITY)
_ABSOLUTE = re.compile(rf"https?://(?![:/?]|$){_AUTHORITY}(?:[/?].*)?", re.IGNORECASE)


def check_host(host: str) -> None:
    """Refuse a Host header that names no host."""
    if not _HOST.fullmatch(host):
        raise BadRequest("The Host header names no host.")


def check_target(target: str, method: bytes) -> None:
    """Refuse a request target that is neither a path nor an address (RFC 9112, section 3.2)."""
    for_all = target == "*" and method == b"OPTIONS"
    if "#" in target or not (for_all or _ABSOLUTE.fullmatch(target)):
        raise BadRequest("The request target is neither a path nor an http address.")
