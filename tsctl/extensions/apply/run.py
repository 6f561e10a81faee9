"""Execute the steps of a plan, one after the other; if one fails, undo those before.

The undoing is a plan, too: from the state that the failure has left to the state at the start. The daemon keeps the
unpacked archives of that state until the next change, so even an archive whose file is gone comes back.
"""

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tsctl.client import DaemonClient
from tsctl.errors import CliError, Interrupted
from tsctl.extensions.apply.plan import only, plan
from tsctl.extensions.apply.state import DaemonState, State, read_state
from tsctl.extensions.apply.steps import PlannedStep
from tsctl.streams import echo, echo_json

_CHANGE = "X-Tsctl-Change"  # of the daemon: requests with one token are one change for `tsctl rollback`
_COLUMNS = ("", "MODEL", "VERSION", "CHANGE", "DETAILS")
_STYLES = {"+": "green", "~": "yellow", "-": "red"}


class ChangingDaemon(NamedTuple):
    """The daemon, as one change of its models sees it."""

    client: DaemonClient
    store: Path | None

    def state(self) -> DaemonState:
        """Return the registered versions.

        Raises:
            CliError: the daemon does not answer.
        """
        return read_state(self.client.json("GET", "/tsctl/registrations"), self.store)

    def carry_out(
        self,
        steps: Sequence[PlannedStep],
        start: State,
        *,
        dry_run: bool,
        as_json: bool,
        same: str,
        done: str,
        note: str = "",
    ) -> None:
        """Print the steps of a plan, and execute them; with `as_json` print them alone.

        Args:
            start: as of `execute`.
            same, done: the lines where there are no steps, and where all are done.
            note: printed before; empty for none.

        Raises:
            CliError: as `execute`.
            Interrupted: as `execute`.
        """
        if as_json:
            document = {"applied": not dry_run, "changes": _documents(steps)}
            if not dry_run:
                execute(self, steps, start, lambda line: None)
            echo_json(document)
            return
        from tsctl import render

        if note:
            render.note(note)
        if steps:
            _show(steps)
            if dry_run:
                return
            execute(self, steps, start, lambda line: echo(line, err=True))
        echo(done if steps else same)


def daemon_at(socket: Path | None) -> ChangingDaemon:
    """Return the daemon behind a control socket; what is executed with it is one change.

    Raises:
        CliError: the daemon does not answer.
    """
    client = DaemonClient(socket, headers={_CHANGE: secrets.token_hex(8)})
    store = client.json("GET", "/tsctl/status")["modelStore"]
    return ChangingDaemon(client, None if store is None else Path(store))


def execute(daemon: ChangingDaemon, steps: Sequence[PlannedStep], start: State, tell: Callable[[str], None]) -> None:
    """Execute the steps; undo them if one fails.

    Args:
        start: the state that the steps were planned from, with all models that they change.
        tell: called with a line for each step that is done.

    Raises:
        CliError: a step failed; the hint says whether the state is as it was at the start.
        Interrupted: the user pressed Ctrl-C; nothing is undone.
    """
    for number, step in enumerate(steps):
        try:
            step.execute(daemon.client)
        except Interrupted as error:
            error.hint = f"{number} of {len(steps)} changes are done; `tsctl apply` again does the rest"
            raise
        except CliError as error:
            hint = _undo(daemon, {step.model for step in steps}, start, tell)
            message = f"{step}: {error.message}"
            raise CliError(message, hint, error.details, error.kind) from None
        tell(step.texts().done)


def _undo(daemon: ChangingDaemon, names: set[str], start: State, tell: Callable[[str], None]) -> str:
    """Return to the state of the start; return a sentence for the user."""
    try:
        steps = plan(only(daemon.state().models, names), only(start, names))
        for step in steps:
            step.execute(daemon.client)
            tell(f"Undone: {step.texts().done}")
    except CliError as error:
        return f"undoing failed, too: {error.message}; `tsctl ls` shows the models"
    return "the changes before it are undone" if steps else "nothing was changed"


def _show(steps: Sequence[PlannedStep]) -> None:
    from rich.text import Text

    from tsctl import render

    rows = [step.texts()[:-1] for step in steps]
    render.table(_COLUMNS, [(Text(sign, style=_STYLES[sign]), *rest) for sign, *rest in rows])


def _documents(steps: Sequence[PlannedStep]) -> list[dict[str, str]]:
    names = ("model", "version", "change", "details")
    return [dict(zip(names, step.texts()[1:-1], strict=True)) for step in steps]
