"""`tsctl completion`."""

import click

from tsctl.completion import SHELLS, script


@click.command
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash   tsctl completion bash > ~/.local/share/bash-completion/completions/tsctl
    zsh    tsctl completion zsh > "${fpath[1]}/_tsctl"
    fish   tsctl completion fish > ~/.config/fish/completions/tsctl.fish
    """
    click.echo(script(shell))
