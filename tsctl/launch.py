"""The daemon as the command line starts and stops it: in the background (starting.py), or in this process's place."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tsctl.client import DaemonClient
from tsctl.errors import CliError
from tsctl.starting import DAEMON, START_TIMEOUT, NotStarted, started


def start(arguments: Sequence[str], state_dir: Path) -> dict[str, Any]:
    """Start the daemon; return its status document once listening.

    Raises:
        CliError: the daemon could not start; the message is its own reason.
    """
    with told():
        return started(arguments, state_dir)[1]


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Translate the failure to start a daemon within the block to an error for the user."""
    try:
        yield
    except NotStarted as error:
        raise CliError(str(error), error.hint, error.details) from None


def await_models(client: DaemonClient, tick: Callable[[float], None], patience: float = START_TIMEOUT) -> list[str]:
    """Wait until the models of the start are registered, or could not be; their workers may still be loading.

    Args:
        tick: called with the seconds to wait between two questions.
        patience: seconds.

    Returns:
        The names of those that are still being unpacked or downloaded when the patience ends; empty for one whose name
        is not known yet.
    """
    pause = 0.02
    while True:
        waiting: list[str] = client.json("GET", "/tsctl/status").get("registering", [])
        if not waiting or patience <= 0:
            return waiting
        tick(pause)
        patience -= pause
        pause = min(2 * pause, 0.25)


def lost_models(client: DaemonClient, started: float) -> list[str]:
    """Return a sentence for each model of the start that could not be registered.

    Args:
        started: when the daemon did, in seconds since the epoch.
    """
    events = client.json("GET", "/tsctl/events", since=started, level="error", limit=1000)["events"]
    found = [event for event in events if event["kind"] == "registration-failed"]
    return [": ".join(filter(None, (event["model"], event["text"]))) for event in found]


def further_addresses(status: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the services beside predictions, with their addresses; metrics only where they have one of their own."""
    management, metrics = status.get("managementAddress"), status.get("metricsAddress")
    found = [("management", management), ("metrics", metrics if metrics != management else None)]
    for service, field in (("gRPC", "grpcAddresses"), ("gRPC management", "grpcManagementAddresses")):
        found += [(service, address) for address in status.get(field, ())]
    return [(service, address) for service, address in found if address]


def run(arguments: Sequence[str]) -> NoReturn:
    """Replace this process by the daemon, whose exit code becomes this command's."""
    os.execv(DAEMON[0], [*DAEMON, *arguments])


def stop(pid: int, wait: float, tick: Callable[[], None]) -> None:
    """Ask the daemon to stop, and wait for its end.

    Args:
        pid: reported by the daemon itself.
        wait: seconds; the daemon's grace time and a margin.
        tick: called every tenth of a second.

    Raises:
        CliError: the user may not signal the daemon, or the daemon did not end in time.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        deadline = time.monotonic() + wait
        while not select.select([descriptor], [], [], 0.1)[0]:
            tick()
            if time.monotonic() > deadline:
                raise CliError(f"the daemon with pid {pid} did not stop within {wait:g} s", f"`kill -9 {pid}` ends it")
    except PermissionError:
        raise CliError(f"not allowed to stop the daemon with pid {pid}") from None
    finally:
        os.close(descriptor)
