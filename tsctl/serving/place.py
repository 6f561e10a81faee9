"""The daemon that serves: one that runs already, or one of our own.

Our own has a private state directory, so that it restores no models and leaves none; and it ends with this process,
however this one ends: the daemon holds the reading end of a pipe.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tsctl.client import DaemonClient
from tsctl.daemon import paths
from tsctl.daemon.targets import ServeTarget
from tsctl.errors import CliError, NoDaemon
from tsctl.launch import start, stop

GRACE = 5.0  # seconds that running requests have after Ctrl-C
STARTING = 60.0  # seconds in which a daemon takes the lock of its new state directory
PREFIX = "tsctl-serve-"  # of a state directory
STOP_MARGIN = 10.0  # seconds beyond, for workers that must be killed


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
    """Return the error for a socket that belongs to another user."""
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


def own_arguments(state_dir: Path, socket: Path, address: str | None, targets: Sequence[ServeTarget]) -> list[str]:
    """Return the arguments of a daemon of our own.

    Args:
        address: of predictions, HOST:PORT; None for the usual one.

    URLs that the user names are allowed, exactly these; no model list is loaded, whatever the environment says.
    """
    import re

    arguments = [f"--state-dir={state_dir}", f"--socket={socket}", f"--grace={GRACE:g}", "--models="]
    if address is not None:
        arguments.append(f"--inference-address={address}")
    # A pattern holds no comma: commas separate patterns.
    urls = [re.escape(target.url).replace(",", ".") for target in targets if target.kind == "url"]
    if urls and "TSCTL_ALLOWED_URLS" not in os.environ:
        arguments.append(f"--allowed-urls={','.join(urls)}")
    return arguments


def remove_leftovers(folder: Path, now: float) -> None:
    """Remove the state directories of commands that were killed: those of this user whose daemon has ended.

    Args:
        now: seconds since the epoch.
    """
    for directory in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            status = directory.lstat()
            settled = now - status.st_mtime > STARTING and stat.S_ISDIR(status.st_mode)
            if settled and status.st_uid == os.getuid() and not _locked(directory / "lock"):
                shutil.rmtree(directory, ignore_errors=True)


def _locked(file: Path) -> bool:
    try:
        with file.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:  # a daemon that ends removes the file
        return False
    except BlockingIOError:
        return True
    return False


class OwnDaemon:
    """A daemon that this process has started.

    Attributes:
        status: its status document, as it began to listen.
    """

    def __init__(self, client: DaemonClient, address: str | None, targets: Sequence[ServeTarget]) -> None:
        """Start the daemon, and wait until it listens.

        Raises:
            CliError: the daemon cannot start, such as because the port is in use.
        """
        self._client = client
        remove_leftovers(Path(tempfile.gettempdir()), time.time())
        self._state_dir = Path(tempfile.mkdtemp(prefix=PREFIX))  # 0700
        # The daemon reads to the end of this pipe, which comes when this process ends, even by SIGKILL.
        reading, self._alive = os.pipe()
        try:
            arguments = own_arguments(self._state_dir, client.path, address, targets)
            self.status = start([*arguments, f"--parent-fd={reading}"], self._state_dir, (reading,))
        except CliError as error:
            self._remove()
            raise mended(error, address) from None
        except BaseException:
            self._remove()
            raise
        finally:
            os.close(reading)

    def close(self) -> None:
        """Stop the daemon gracefully, wait for its end, and remove its files; Ctrl-C meanwhile kills it."""
        pid = self.status["pid"]
        with contextlib.suppress(CliError):
            pid = self._client.json("GET", "/tsctl/status")["pid"]  # an upgrade has changed it
        try:
            stop(pid, GRACE + STOP_MARGIN, lambda: None)
        except (KeyboardInterrupt, CliError):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, 9)
        finally:
            self._remove()

    def _remove(self) -> None:
        os.close(self._alive)
        shutil.rmtree(self._state_dir, ignore_errors=True)


def mended(error: CliError, address: str | None) -> CliError:
    """Return the error of a daemon that could not start, with a remedy that this command has."""
    if "in use" in error.message:
        other = 8090 if address is None else int(address.rpartition(":")[2]) + 1
        return CliError(error.message, f"choose another: `tsctl serve --port {other} …`", error.details)
    return error


def model_log(status: Mapping[str, Any], name: str, version: str) -> Path:
    """Return the path of a model's log."""
    return paths.model_log(Path(status["stateDir"]), name, version)
