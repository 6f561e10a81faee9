"""`tsctl export`."""

from pathlib import Path

import click

from tsctl.completion import complete_model
from tsctl.errors import CliError
from tsctl.streams import echo
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@click.argument("models", nargs=-1, shell_complete=complete_model)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
@click.pass_obj
def command(socket: Path | None, models: tuple[str, ...], output: Path | None) -> None:
    """Write the registered models as a file for `tsctl apply`: all, or the named MODELS.

    The file holds the sources, with their SHA-256, the numbers of workers, and the settings that were
    asked for; those of the archives and of the daemon stay where they are. Models that `tsctl serve`
    serves are left out. The file goes to stdout.
    """
    from tsctl.apply.export import export
    from tsctl.apply.run import daemon_at

    daemon = daemon_at(socket)
    state = daemon.state().models
    for name in models:
        if name not in state:
            registered = ", ".join(f"`{each}`" for each in state) or "none"
            raise CliError(f"no model `{name}` is registered", f"registered: {registered}")
    text = export({name: state[name] for name in models or state}, daemon.store)
    if output is None:
        echo(text, nl=False)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise CliError(f"cannot write `{output}`: {error.strerror}") from None
