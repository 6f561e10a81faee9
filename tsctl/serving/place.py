"""The daemon that serves: one that runs already, or one of our own.

Our own has a private state directory, so that it restores no models and leaves none; and it ends with this process,
however this one ends: the daemon holds the reading end of a pipe.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tsctl.client import DaemonClient
from tsctl.daemon.targets import ServeTarget
from tsctl.errors import CliError, NoDaemon
from tsctl.launch import told
from tsctl.private_daemon import PrivateDaemon


def running_daemon(client: DaemonClient) -> dict[str, Any] | None:
    """Return the status of the daemon on the socket; None if there is none.

    Raises:
        CliError: the daemon is another user's, or does not answer.
    """
    try:
        owner = client.path.stat().st_uid
        if owner not in (os.getuid(), 0):
            raise foreign_daemon(client.path, owner)
        status: dict[str, Any] = client.json("GET", "/tsctl/status")
    except (NoDaemon, FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        raise foreign_daemon(client.path, None) from None
    return status


def foreign_daemon(socket: Path, owner: int | None) -> CliError:
    whose = "another user" if owner is None else f"user {owner}"
    remedy = "name a socket of your own: `tsctl --socket ~/tsctl.sock serve …`"
    if os.environ.get("XDG_RUNTIME_DIR") and not os.environ.get("TSCTL_SOCKET"):
        remedy = "unset XDG_RUNTIME_DIR, which `su` and `sudo` keep, or " + remedy
    return CliError(f"the daemon at `{socket}` belongs to {whose}", remedy)


def check_joinable(status: Mapping[str, Any], prefix: str, host: str | None, port: int | None) -> None:
    """Check that models of this command can be served by a running daemon.

    Args:
        status: the daemon's status document.
        prefix: `sys.prefix` of this process, which has the packages that the user's code imports.
        host, port: the address that the user asks for; None for any.

    Raises:
        CliError: the daemon runs in another Python environment, or listens elsewhere.
    """
    theirs = status.get("prefix")
    if theirs is not None and os.path.realpath(theirs) != os.path.realpath(prefix):
        raise CliError(
            f"the running daemon uses another Python environment: `{theirs}`, not `{prefix}`",
            "stop it with `tsctl stop`, or serve beside it: `tsctl --socket /tmp/my.sock serve --port 8090 …`",
        )
    address = str(status.get("inferenceAddress") or "")
    there = urlsplit(address)
    asked = {"host": (host, there.hostname), "port": (port, there.port)}
    for what, (wanted, found) in asked.items():
        if wanted not in (None, found):
            raise CliError(
                f"a daemon is running already and listens on {address or 'no port'}, not on {what} {wanted}",
                f"leave out `--{what}`, or stop that daemon with `tsctl stop`",
            )


def own_arguments(address: str | None, targets: Sequence[ServeTarget]) -> list[str]:
    """Return the arguments of a daemon of our own.

    Args:
        address: of predictions, HOST:PORT; None for the usual one.

    URLs that the user names are allowed, exactly these; no model list is loaded, whatever the environment says.
    """
    import re

    arguments = ["--models="]
    if address is not None:
        arguments.append(f"--inference-address={address}")
    # A pattern holds no comma: commas separate patterns.
    urls = [re.escape(target.url).replace(",", ".") for target in targets if target.kind == "url"]
    if urls and "TSCTL_ALLOWED_URLS" not in os.environ:
        arguments.append(f"--allowed-urls={','.join(urls)}")
    return arguments


def own_daemon(client: DaemonClient, address: str | None, targets: Sequence[ServeTarget]) -> PrivateDaemon:
    """Start a daemon of our own, and wait until it listens.

    Raises:
        CliError: the daemon cannot start, such as because the port is in use.
    """
    try:
        with told():
            return PrivateDaemon(own_arguments(address, targets), client.path)
    except CliError as error:
        raise mended(error, address) from None


def mended(error: CliError, address: str | None) -> CliError:
    """Return the error of a daemon that could not start, with a remedy that this command has."""
    if "in use" in error.message:
        other = 8090 if address is None else int(address.rpartition(":")[2]) + 1
        return CliError(error.message, f"choose another: `tsctl serve --port {other} …`", error.details)
    return error
