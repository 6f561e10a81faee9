"""Where a daemon is: the path of its control socket, or an http(s) URL."""

import os
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tsctl.daemon import paths

_PORTS = {"http": 80, "https": 443}
_PLACE = re.compile(r"[\w.-]+:\d+")


class DaemonAddress(NamedTuple):
    """The address of a daemon.

    Attributes:
        socket: the control socket; None for TCP, which the other attributes are for.
        prefix: the path before each route, without a slash at the end.
    """

    socket: Path | None
    host: str = "localhost"
    port: int = 80
    tls: bool = False
    prefix: str = ""

    def __str__(self) -> str:
        if self.socket is not None:
            return str(self.socket)
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' * self.tls}://{host}:{self.port}{self.prefix}"

    @property
    def host_header(self) -> str:
        if self.socket is not None:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS["https" if self.tls else "http"] else f"{host}:{self.port}"


def read_address(given: str | os.PathLike[str] | None) -> DaemonAddress:
    """Parse a socket path or a URL; None is `TSCTL_SOCKET`, or the default control socket.

    Raises:
        ValueError: the text is a URL that cannot be asked, or HOST:PORT, or the path is too long for a socket.
    """
    if given is None:
        given = os.environ.get("TSCTL_SOCKET") or paths.default_socket()
    text = os.fspath(given)
    if "://" in text and not text.startswith("unix://"):
        return _read_url(text)
    if _PLACE.fullmatch(text):
        raise ValueError(f"`{text}` is neither a path nor a URL; write http://{text}, or ./{text} for a socket")
    path = Path(os.path.expanduser(text.removeprefix("unix://"))).absolute()
    try:
        paths.check_socket_path(path)
    except paths.PathError as error:
        raise ValueError(str(error)) from None
    return DaemonAddress(path)


def _read_url(text: str) -> DaemonAddress:
    try:
        split = urlsplit(text)
        scheme, host, port = split.scheme.lower(), split.hostname, split.port
    except ValueError as error:
        raise ValueError(f"`{text}` is not a URL: {error}") from None
    if scheme not in _PORTS:
        raise ValueError(f"`{text}` is neither a path nor an http:// or https:// URL")
    if not host or split.query or split.fragment or split.username is not None:
        raise ValueError(f"`{text}` is not an address; write http://HOST:PORT, with the token in `token=`")
    return DaemonAddress(
        None, host, _PORTS[scheme] if port is None else port, scheme == "https", split.path.rstrip("/")
    )
