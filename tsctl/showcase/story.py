"""The demo from its beginning to its end: the scenes are a table, and the daemon is in a folder of its own."""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tsctl.client import DaemonClient
from tsctl.daemon import paths
from tsctl.errors import CliError, Interrupted
from tsctl.launch import told
from tsctl.private_daemon import PrivateDaemon, own_environment
from tsctl.showcase.disturbing import disturb
from tsctl.showcase.drawing import drawn
from tsctl.showcase.facts import ShowcaseFacts
from tsctl.showcase.measuring import measure, register
from tsctl.showcase.photograph import classify, draw_photograph
from tsctl.showcase.screen import thousands
from tsctl.showcase.stage import SERVED, Stage

CLIENTS = 32
# (activity, scene); a scene may name further activities.
SCENES: tuple[tuple[str, Callable[[Stage], None]], ...] = (
    ("loading the model (this imports torch)", register),
    ("measuring", measure),
    ("starting the clients", disturb),
    ("counting", Stage.check),
    ("looking at a photograph", classify),
)


def play() -> None:
    """Play all scenes on a private daemon.

    Raises:
        CliError: a request or a scene failed.
        Interrupted: the user pressed Ctrl-C.
    """
    began = time.monotonic()

    def now() -> float:
        return time.monotonic() - began

    body = (SERVED / "digit.bin").read_bytes()
    facts = ShowcaseFacts(body, _about(), CLIENTS)
    facts.do("starting a private daemon", 0.0)
    try:
        with drawn(facts, now):
            try:
                _play_scenes(facts, body, now)
                facts.finished = True
            finally:
                facts.do("", now())
    except KeyboardInterrupt:
        raise Interrupted("interrupted: the private daemon has been stopped", "") from None
    if facts.photograph is not None:
        draw_photograph(facts.photograph)


def _play_scenes(facts: ShowcaseFacts, body: bytes, now: Callable[[], float]) -> None:
    with private_daemon() as daemon:
        stage = Stage(DaemonClient(daemon.socket), daemon.folder, facts, body, Path(), now)
        try:
            for activity, scene in SCENES:
                facts.do(activity, now())
                scene(stage)
        finally:
            facts.do("stopping the private daemon", now())


@contextlib.contextmanager
def private_daemon() -> Iterator[PrivateDaemon]:
    """Run a daemon without TCP within the block, then stop it and remove its folder.

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


def _about() -> str:
    try:
        facts = json.loads((SERVED / "about.json").read_text())
    except OSError as error:
        raise CliError(f"cannot read `{error.filename}`: {error.strerror}", "install tsctl again") from None
    return (
        f"A recurrent network reads a handwritten digit pixel by pixel: {thousands(facts['weights'])} weights, shipped"
        f" with tsctl; right for {facts['right']} of {facts['heldOut']} digits that it was not trained on. One worker."
    )
