"""`tsctl console`."""

import contextlib
import signal
import sys
from pathlib import Path

import click

from tsctl.client import DaemonClient
from tsctl.errors import CliError, hint
from tsctl.streams import echo
from tsctl.terminal.verb import Verb

_FILE = click.Path(path_type=Path)


@click.command(cls=Verb)
@click.option("--host", default="127.0.0.1", metavar="IP", help="The IP address to listen on [default: 127.0.0.1].")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="The port to listen on [default: one that is free].",
)
@click.option("--certificate", type=_FILE, metavar="FILE", help="The certificate of the page, for TLS, as PEM.")
@click.option("--key", type=_FILE, metavar="FILE", help="The certificate's private key, as PEM.")
@click.option("--token-file", type=_FILE, metavar="FILE", help="A file with the token that browsers sign in with.")
@click.option("--no-browser", is_flag=True, help="Print the file to open instead of opening a browser.")
@click.pass_obj
def command(
    socket: Path | None,
    host: str,
    port: int,
    certificate: Path | None,
    key: Path | None,
    token_file: Path | None,
    no_browser: bool,
) -> None:
    """Show the daemon and its models on a page in the browser, until Ctrl-C.

    The page watches the models, changes settings, sends requests, and shows the results of `tsctl tune`.
    Only you can open the page: with a file that no other user can read. The daemon may stop and start
    meanwhile.

    An IP address that other machines can reach needs --certificate, --key and --token-file: browsers
    then sign in with the token.
    """
    from tsctl.extensions.console.entrance import Entrance
    from tsctl.extensions.console.listening import listening
    from tsctl.extensions.console.page import PageServer

    at = listening(host, port, certificate, key, token_file)
    client = DaemonClient(socket, timeout=600.0)
    state_dir = Path(client.json("GET", "/tsctl/status")["stateDir"])
    try:
        server = PageServer(at, client, state_dir)
    except OSError as error:
        raise CliError(f"cannot listen at {host}:{port}: {error.strerror}", "choose another `--port`") from None
    url = at.url(server.port)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # removes the file
    with server, contextlib.ExitStack() as files, contextlib.suppress(KeyboardInterrupt):
        echo(f"Serving the console at {url} until Ctrl-C")
        if at.token:
            echo(f"sign in with the token in `{token_file}`")
        else:
            entrance = files.enter_context(contextlib.closing(Entrance(url, server.session)))
            if no_browser or not entrance.open():
                echo(f"open in a browser: {entrance.file.as_uri()}")
            else:
                hint(f"if no browser opens: {entrance.file.as_uri()}")
        server.serve_forever()
