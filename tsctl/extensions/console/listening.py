"""Where the page is served, and what that needs: from another machine only with TLS and a token of the operator.

address            TLS                        entrance
loopback           if a certificate is given  the redirect file; or `--token-file`
anything else      required                   `--token-file`, required
"""

import ipaddress
import os
import ssl
import stat
from pathlib import Path
from typing import NamedTuple

from tsctl.errors import CliError

LEAST = 16  # characters of a token that others can try to guess
_MOST = 4096  # bytes of a token file


class Listening(NamedTuple):
    """An address that may be served.

    Attributes:
        tls: None for plain HTTP.
        token: of the operator; empty if the redirect file leads to the page.
    """

    address: str
    port: int
    tls: ssl.SSLContext | None
    token: str

    def url(self, port: int) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http{'s' * (self.tls is not None)}://{host}:{port}"


def listening(
    address: str, port: int, certificate: Path | None, key: Path | None, token_file: Path | None
) -> Listening:
    """Check the options and read their files.

    Raises:
        CliError: the address needs more than was given, or a file cannot be used.
    """
    try:
        loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        raise CliError(f"`{address}` is not an IP address", "use an address of this machine, or leave it out") from None
    if (certificate is None) != (key is None):
        given, missing = ("--certificate", "--key") if key is None else ("--key", "--certificate")
        raise CliError(f"`{given}` needs `{missing}`", f"add `{missing} FILE`")
    wanted = {"--certificate": certificate, "--key": key, "--token-file": token_file}
    if not loopback and (missing := " ".join(f"{name} FILE" for name, file in wanted.items() if file is None)):
        raise CliError(
            f"other machines can reach `{address}`, so the page needs TLS and a token there",
            f"add `{missing}`, or forward a port with `ssh -L`",
        )
    tls = _context(certificate, key) if certificate is not None and key is not None else None
    return Listening(address, port, tls, _token(token_file) if token_file is not None else "")


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password="")  # never asks for one
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise CliError(f"cannot use the certificate `{certificate}` with the key `{key}`: {reason}") from None
    return context


def _token(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            token = opened.read(_MOST + 1).decode("latin-1").strip()
    except OSError as error:
        raise CliError(f"cannot read the token file `{file}`: {error.strerror}") from None
    if status.st_mode & 0o077:
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        raise CliError(f"others can use the token file `{file}` (mode {mode})", f"run `chmod 600 {file}`")
    if not LEAST <= len(token) <= _MOST or not all("!" <= each <= "~" for each in token):
        raise CliError(
            f"the token in `{file}` is not one line of {LEAST} to {_MOST} ASCII characters without spaces",
            "write the output of `openssl rand -hex 32` there",
        )
    return token
