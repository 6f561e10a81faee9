"""Execute the steps of a plan, one after the other; if one fails, undo those before.

The undoing is a plan, too: from the state that the failure has left to the state at the start. The daemon keeps the
unpacked archives of that state until the next change, so even an archive whose file is gone comes back.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, assert_never

from tsctl.apply.difference import documents, show, texts_of
from tsctl.apply.plan import (
    ChangeSettings,
    PlannedStep,
    Register,
    ScaleWorkers,
    SetDefault,
    SetRoute,
    Unregister,
    Unroute,
    only,
    plan,
)
from tsctl.apply.state import DaemonState, State, read_state
from tsctl.client import DaemonClient, model_path
from tsctl.daemon.tables import MODEL_SETTINGS
from tsctl.errors import CliError, Interrupted
from tsctl.progress import warn, work
from tsctl.setting_text import NO_NAMES
from tsctl.streams import echo, echo_json

_CHANGE = "X-Tsctl-Change"  # of the daemon: requests with one token are one change for `tsctl rollback`
_ROWS = {row.yaml: row for row in MODEL_SETTINGS if row.yaml}


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
            document = {"applied": not dry_run, "changes": documents(steps)}
            if not dry_run:
                execute(self, steps, start, lambda line: None)
            echo_json(document)
            return
        from tsctl import render

        if note:
            render.note(note)
        if steps:
            show(steps)
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
            _execute(daemon.client, step)
        except Interrupted as error:
            error.hint = f"{number} of {len(steps)} changes are done; `tsctl apply` again does the rest"
            raise
        except CliError as error:
            hint = _undo(daemon, {step.model for step in steps}, start, tell)
            message = f"`{step.model}` {step.version}: {error.message}"
            raise CliError(message, hint, error.details, error.kind) from None
        tell(texts_of(step).done)


def _undo(daemon: ChangingDaemon, names: set[str], start: State, tell: Callable[[str], None]) -> str:
    """Return to the state of the start; return a sentence for the user."""
    try:
        steps = plan(only(daemon.state().models, names), only(start, names))
        for step in steps:
            _execute(daemon.client, step)
            tell(f"Undone: {texts_of(step).done}")
    except CliError as error:
        return f"undoing failed, too: {error.message}; `tsctl ls` shows the models"
    return "the changes before it are undone" if steps else "nothing was changed"


def _execute(client: DaemonClient, step: PlannedStep) -> None:
    named = f"/models/{model_path(f'{step.model}/{step.version}')}"
    match step:
        case Register():
            _register(client, step, named)
        case ChangeSettings():
            client.json("PATCH", named, **_parameters(step.after))
        case ScaleWorkers():
            _scale(client, step, named, step.after)
        case SetDefault():
            client.json("PUT", f"{named}/set-default")
        case SetRoute():
            client.json("PUT", f"/models/{model_path(step.model)}/route", **_route_parameters(step.after))
        case Unroute():
            client.json("DELETE", f"/models/{model_path(step.model)}/route")
        case Unregister():
            client.json("DELETE", named)
        case _:
            assert_never(step)


def _route_parameters(route: Mapping[str, Any]) -> dict[str, str]:
    shares = ",".join(f"{version}={weight:g}" for version, weight in route["weights"].items())
    rest = {name: value for name, value in route.items() if name != "weights"}
    return {"weights": shares} | {name: str(value).lower() for name, value in rest.items()}


def _register(client: DaemonClient, step: Register, named: str) -> None:
    spec, replaces = step.after, step.before
    workers = spec.workers or (replaces.workers if replaces is not None else None)
    document = work(
        client,
        "POST",
        "/models",
        subject=f"{step.model} {step.version}",
        hint="`tsctl apply` again does the rest",
        url=spec.url,
        model_name=step.model,
        model_version=step.version,
        sha256=spec.sha256,
        handler=spec.handler,
        replace=None if replaces is None else "true",
        reset=None if replaces is None else "true",
        synchronous="true",
        initial_workers=None if workers is None else workers[0],
        fallback_workers=1,
        fallback_batch_size=spec.fallback_batch_size or None,
        **_parameters(spec.settings),
    )
    warn(document)
    if workers is not None and workers[1] > workers[0]:
        _scale(client, step, named, workers)


def _scale(client: DaemonClient, step: Register | ScaleWorkers, named: str, workers: tuple[int, int]) -> None:
    work(
        client,
        "PUT",
        named,
        subject=f"{step.model} {step.version}",
        hint="`tsctl apply` again does the rest",
        min_worker=workers[0],
        max_worker=workers[1],
        synchronous="true",
    )


def _parameters(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of a request: settings in the units of model-config.yaml become those of REST."""
    found = {}
    for key, value in settings.items():
        row = _ROWS[key]
        shown = row.kind.show(row.written.read(value))
        text = (",".join(map(str, shown)) or NO_NAMES) if isinstance(shown, list) else shown
        found[row.rest] = str(text).lower() if isinstance(text, bool) else str(text)
    return found
