"""The places of the daemon's files.

    runtime directory   $XDG_RUNTIME_DIR/tsctl, else /tmp/tsctl-UID   0700
        control.sock    the control socket                            0600
        control.pid     the daemon's pid; locked during its life
    state directory     $XDG_STATE_HOME/tsctl, else ~/.local/state/tsctl   0700
        lock            locked while a daemon uses the directory
        logs/           daemon.log, access.log, MODEL@VERSION.log
        models/         unpacked archives, named by their content
        removed-…/      one of those that nothing uses any more, until its files are removed
        sums/           the SHA-256 of each file of those, by the same names (models/archives/digests.py)
        environments/   Python environments, named by the requirements they were made for
        downloads/      archives that are being downloaded
        compiled/       models compiled by torch.compile, reused at the next start
        snapshot.json   the registered models, for the next run
        tuned/          MODEL@VERSION.json: the last result of `tsctl tune` (tsctl/tuning/saved_results.py)
        events.jsonl    the latest events; events.jsonl.1 has the ones before, and a lock is beside them

Standard library only: the command line imports this module.
"""

import os
import stat
from pathlib import Path

SOCKET_PATH_LIMIT = 107  # bytes; sun_path of unix(7) has 108 with the final zero


class PathError(Exception):
    """A path cannot be used; the message says why."""


def default_socket() -> Path:
    """Return the default path of the control socket."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    directory = Path(runtime) / "tsctl" if runtime else Path(f"/tmp/tsctl-{os.getuid()}")
    return directory / "control.sock"


def default_state_dir() -> Path:
    """Return the default state directory, for logs and unpacked archives.

    Raises:
        PathError: this user has no home directory, as in some containers.
    """
    state = os.environ.get("XDG_STATE_HOME")
    try:
        return (Path(state) if state else Path.home() / ".local" / "state") / "tsctl"
    except RuntimeError:
        raise PathError(f"user {os.getuid()} has no home directory to keep state in") from None


def pid_file(socket: Path) -> Path:
    return socket.with_suffix(".pid")


def logs_dir(state_dir: Path) -> Path:
    return state_dir / "logs"


def daemon_log(state_dir: Path) -> Path:
    return logs_dir(state_dir) / "daemon.log"


def access_log(state_dir: Path) -> Path:
    return logs_dir(state_dir) / "access.log"


def model_log(state_dir: Path, name: str, version: str) -> Path:
    return logs_dir(state_dir) / f"{name}@{version}.log"  # neither holds an @


def models_dir(state_dir: Path) -> Path:
    return state_dir / "models"


def environments_dir(state_dir: Path) -> Path:
    return state_dir / "environments"


def downloads_dir(state_dir: Path) -> Path:
    return state_dir / "downloads"


def compiled_dir(state_dir: Path) -> Path:
    return state_dir / "compiled"


def tuned_dir(state_dir: Path) -> Path:
    return state_dir / "tuned"


def snapshot(state_dir: Path) -> Path:
    return state_dir / "snapshot.json"


def events_file(state_dir: Path) -> Path:
    return state_dir / "events.jsonl"


def check_socket_path(socket: Path) -> None:
    """Check that the kernel can bind a path.

    Raises:
        PathError: the path has more than 107 bytes.
    """
    length = len(os.fsencode(socket))
    if length > SOCKET_PATH_LIMIT:
        raise PathError(
            f"the socket path has {length} bytes, and a Unix socket takes at most {SOCKET_PATH_LIMIT}: `{socket}`"
        )


def make_private(directory: Path, *, strict: bool) -> None:
    """Create a directory that only its owner can enter, or check an existing one.

    Args:
        directory: created with its parents, 0700, whatever the umask.
        strict: reject an existing directory that others can enter, too; otherwise only a
            foreign owner (other than root) is rejected.

    Raises:
        PathError: another user is the owner, the path is no directory, or mkdir fails.
    """
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        try:
            directory.mkdir(mode=0o700)
            directory.chmod(0o700)  # the umask may have removed more
        except FileExistsError:
            pass
        status = directory.lstat() if strict else directory.stat()
    except OSError as error:
        raise PathError(f"cannot make the directory `{directory}`: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode):
        raise PathError(f"`{directory}` is not a directory")
    if status.st_uid != os.getuid() and (strict or status.st_uid != 0):
        raise PathError(f"`{directory}` belongs to user {status.st_uid}, not to {os.getuid()}")
    if strict and status.st_mode & 0o077:
        raise PathError(f"others can enter `{directory}` (mode {stat.S_IMODE(status.st_mode):o}); make it 0700")
