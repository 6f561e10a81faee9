"""The demo's daemon: a socket in a folder that only this user can enter, no TCP, a state directory of its own.

The daemon ends with this process, however that ends: it holds the reading end of a pipe.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tsctl.client import DaemonClient
from tsctl.daemon import paths
from tsctl.errors import CliError, NoDaemon
from tsctl.launch import start, stop

_SOCKET = "control.sock"
GRACE = 5  # seconds that running requests have when the daemon stops
MARGIN = 10.0  # seconds beyond
FOREIGN = ("TSCTL_", "TS_CONFIG_FILE")  # settings of the user's own daemon


class DemoDaemon:
    """A running daemon, and its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / _SOCKET
        self.client = DaemonClient(self.socket)

    @property
    def status(self) -> Any:
        return self.client.json("GET", "/tsctl/status")

    def worker(self, model: str) -> int | None:
        """Return the pid of the model's first worker that is ready; None while there is none."""
        workers = self.client.json("GET", f"/models/{model}")[0]["workers"]
        return next((int(worker["pid"]) for worker in workers if worker["status"] == "READY"), None)

    def batches(self, model: str) -> dict[int, int]:
        """Return how many batches of each size there were."""
        sizes = self.client.json("GET", f"/models/{model}")[0]["tsctl"]["batching"]["sizes"]
        return {int(size): count for size, count in sizes.items()}


@contextlib.contextmanager
def private_daemon() -> Iterator[DemoDaemon]:
    """Run a daemon within the block, then stop it and remove its folder.

    A failure without a hint of its own keeps the folder with the logs, and its hint is their path.

    Raises:
        CliError: the daemon cannot start or stop, or the block raised.
    """
    folder = _make_folder()
    reading, writing = os.pipe()
    try:
        for name in [name for name in os.environ if name.startswith(FOREIGN)]:
            del os.environ[name]
        arguments = (
            f"--socket={folder / _SOCKET}", f"--state-dir={folder / 'state'}", "--inference-address=none",
            f"--parent-fd={reading}", f"--grace={GRACE}",
        )  # fmt: skip
        start(arguments, folder / "state", (reading,))
        daemon = DemoDaemon(folder)
        try:
            yield daemon
        finally:
            with contextlib.suppress(NoDaemon):
                stop(daemon.status["pid"], GRACE + MARGIN, lambda: None)
    except CliError as error:
        if error.hint:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            error.hint = f"the logs are in `{folder / 'state' / 'logs'}`"
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        os.close(writing)
        os.close(reading)
    shutil.rmtree(folder, ignore_errors=True)


def _make_folder() -> Path:
    try:
        folder = Path(tempfile.mkdtemp(prefix="tsctl-demo-"))  # 0700
    except OSError as error:
        raise CliError(
            f"cannot make a temporary folder: {error.strerror}", "name a writable folder in the variable TMPDIR"
        ) from None
    try:
        paths.check_socket_path(folder / _SOCKET)
    except paths.PathError as error:
        folder.rmdir()
        raise CliError(str(error), "name a folder with a shorter path, such as /tmp, in the variable TMPDIR") from None
    return folder
