"""`tsctl console`."""

import contextlib
import signal
import sys
from pathlib import Path

import click

from tsctl.client import DaemonClient
from tsctl.errors import CliError, hint
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="The port on 127.0.0.1 [default: one that is free].",
)
@click.option("--no-browser", is_flag=True, help="Print the file to open instead of opening a browser.")
@click.pass_obj
def command(socket: Path | None, port: int, no_browser: bool) -> None:
    """Show the daemon and its models on a page in the browser, until Ctrl-C.

    The page watches the models, changes settings, and sends requests. Only one browser can open the
    page: with a token that works once. The daemon may stop and start meanwhile.
    """
    from tsctl.console.entrance import Entrance
    from tsctl.console.page import PageServer

    client = DaemonClient(socket, timeout=600.0)
    state_dir = Path(client.json("GET", "/tsctl/status")["stateDir"])
    try:
        server = PageServer(port, client, state_dir)
    except OSError as error:
        raise CliError(f"cannot listen at 127.0.0.1:{port}: {error.strerror}", "choose another `--port`") from None
    with server, contextlib.closing(Entrance(server.port, server.session.token)) as entrance:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # removes the file
        with contextlib.suppress(KeyboardInterrupt):
            click.echo(f"Serving the console at http://127.0.0.1:{server.port} until Ctrl-C")
            if no_browser or not entrance.open():
                click.echo(f"open in a browser: {entrance.file.as_uri()}")
            else:
                hint(f"if no browser opens: {entrance.file.as_uri()}")
            server.serve_forever()
