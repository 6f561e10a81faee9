"""The errors of the command line, with their exit codes.

    CliError                 exit code 1: the daemon rejected the request, or a file is invalid
    ├─ ServedByProgram
    ├─ NoDaemon              exit code 3: no daemon listens on the socket
    └─ Interrupted           exit code 130: Ctrl-C

Wrong usage is click's own UsageError, exit code 2.
"""

from pathlib import Path

import click

from tsctl.streams import echo


class CliError(click.ClickException):
    """An error for the user: one line, then at most one hint.

    Args:
        details: shown below the message verbatim, such as a traceback.
        kind: the `type` of the daemon's error document; empty for an error of the command line itself.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "", details: str = "", kind: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.details = details
        self.kind = kind

    def show(self, file: object = None) -> None:  # noqa: ARG002 - errors always go to stderr
        echo(self.message, before=f"{click.style('error:', fg='red', bold=True)} ", err=True)
        if self.details:
            echo(self.details if self.details.startswith("    ") else f"\n{self.details}", err=True)
        if self.hint:
            hint(self.hint)


def hint(text: str) -> None:
    """Print a suggestion for the next step to stderr."""
    echo(text, before=f"{click.style('hint:', fg='cyan')} ", err=True)


class ServedByProgram(CliError):
    """The model is served by a program, which alone decides about it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` is served by a program, such as `tsctl serve`", "end that program first")


class NoDaemon(CliError):
    """No daemon listens on the control socket."""

    exit_code = 3

    def __init__(self, socket: Path) -> None:
        super().__init__(f"no daemon at `{socket}`", "start one with `tsctl start`")


class Interrupted(CliError):
    """The user pressed Ctrl-C while the daemon worked."""

    exit_code = 130
