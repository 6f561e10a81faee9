"""The demo's daemon: a socket in a folder that only this user can enter, no TCP, a state directory of its own."""

import contextlib
import os
from collections.abc import Iterator

from tsctl.daemon import paths
from tsctl.errors import CliError
from tsctl.launch import told
from tsctl.private_daemon import PrivateDaemon, own_environment


@contextlib.contextmanager
def private_daemon() -> Iterator[PrivateDaemon]:
    """Run a daemon within the block, then stop it and remove its folder.

    A failure of the block without a hint of its own keeps the folder with the logs, and its hint is their path.

    Raises:
        CliError: the daemon cannot start, or the block raised.
    """
    with told():
        daemon = PrivateDaemon(("--inference-address=none",), environment=own_environment(os.environ))
    keep = False
    try:
        yield daemon
    except CliError as error:
        if keep := not error.hint:
            error.hint = f"the logs are in `{paths.logs_dir(daemon.state_dir)}`"
        raise
    finally:
        daemon.stop(keep=keep)
