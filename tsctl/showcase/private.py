"""The demo's daemon: a socket in a folder that only this user can enter, no TCP, a state directory of its own."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tsctl.client import DaemonClient
from tsctl.daemon import paths
from tsctl.errors import CliError
from tsctl.launch import told
from tsctl.private_daemon import SOCKET, PrivateDaemon, own_environment


class DemoDaemon:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / SOCKET
        self.client = DaemonClient(self.socket)

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

    A failure of the block without a hint of its own keeps the folder with the logs, and its hint is their path.

    Raises:
        CliError: the daemon cannot start, or the block raised.
    """
    with told():
        daemon = PrivateDaemon(("--inference-address=none",), environment=own_environment(os.environ))
    keep = False
    try:
        yield DemoDaemon(daemon.folder)
    except CliError as error:
        if keep := not error.hint:
            error.hint = f"the logs are in `{paths.logs_dir(daemon.state_dir)}`"
        raise
    finally:
        daemon.stop(keep=keep)
