"""`tsctl completion`."""

import click

from tsctl.completion import SHELLS, script
from tsctl.streams import echo
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    Where the shells look for the script:
      bash   ~/.local/share/bash-completion/completions/tsctl
      zsh    "${fpath[1]}/_tsctl"
      fish   ~/.config/fish/completions/tsctl.fish
    """
    echo(script(shell))
