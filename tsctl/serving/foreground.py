"""The whole of `tsctl serve`: check the targets, find or start a daemon, serve until Ctrl-C, clean up."""

import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tsctl.client import DaemonClient
from tsctl.daemon.targets import ServeTarget
from tsctl.options import address_of
from tsctl.render import live
from tsctl.serving import watching
from tsctl.serving.place import check_joinable, own_daemon, running_daemon
from tsctl.serving.requests import read_targets
from tsctl.serving.session import Session
from tsctl.serving.showing import model_lines
from tsctl.streams import echo
from tsctl.terminal.relay import raised_by_signals


def serve(
    socket: Path | None,
    texts: Sequence[str],
    options: Mapping[str, Any],
    *,
    name: str | None,
    handler: str | None,
    watch: bool,
    host: str | None,
    port: int | None,
) -> None:
    """Serve targets in the foreground.

    Args:
        options: parameters of the registrations that the user gave; None for those not given.
        host, port: the address of a daemon of our own; None for the usual one.

    Raises:
        CliError: a target cannot be served, or the daemon cannot be used; nothing is left running.
    """
    directory = Path.cwd()
    targets = read_targets(texts, directory, name=name, handler=handler)
    for target in targets if watch else ():
        watching.check_access(target)
    client = DaemonClient(socket)
    with (
        raised_by_signals(lambda _: KeyboardInterrupt()),
        TemporaryDirectory(prefix="tsctl-", ignore_cleanup_errors=True) as samples,
        _daemon(client, host, port, targets) as (status, joined),
    ):
        session = Session(client, status, secrets.token_hex(16), options, directory, watch=watch)
        try:
            for text, target in zip(texts, targets, strict=True):
                session.serve(text, target)
            session.turn(0.0)  # what the models have printed while they loaded comes first
            echo(_introduction(session, joined=joined, watch=watch) + "\n")
            for served in session.served:
                echo("\n".join(model_lines(client, status, served, Path(samples))) + "\n")
            session.run()
        except KeyboardInterrupt:
            echo(err=True)  # after the `^C` of the terminal
        finally:
            session.close(unregister=joined)


def _introduction(session: Session, *, joined: bool, watch: bool) -> str:
    lines = ["Ctrl-C unregisters it; the daemon goes on" if joined else "Ctrl-C stops it"]
    if watch:
        files = [file for served in session.served for file in watching.watched_files(served.target) if file.exists()]
        names = [file.name for file in dict.fromkeys(files)]
        watched = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        lines.insert(0, f"watching {watched}: what you save is served")
    return "\n".join(lines)


@contextmanager
def _daemon(
    client: DaemonClient, host: str | None, port: int | None, targets: Sequence[ServeTarget]
) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Find or start the daemon for the block; yield its status document, and whether it was running before."""
    status = running_daemon(client)
    if status is not None:
        check_joinable(status, sys.prefix, host, port)
        yield status, True
        return
    with live() as progress:
        progress.show("starting the daemon")
        own = own_daemon(client, address_of(host, port), targets)
    try:
        yield own.status, False
    finally:
        with suppress(KeyboardInterrupt):  # a second Ctrl-C has killed it
            own.stop()
