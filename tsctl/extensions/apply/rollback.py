"""`tsctl rollback`."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tsctl.errors import CliError
from tsctl.extensions.apply.state import ModelSpec, VersionSpec
from tsctl.options import json_option, model_argument
from tsctl.terminal.verb import Verb

if TYPE_CHECKING:
    from tsctl.extensions.apply.state import DaemonState


def restored(earlier: ModelSpec, now: ModelSpec | None) -> ModelSpec:
    """Return the earlier state, with the present numbers of workers of versions that are registered."""
    registered = {} if now is None else now.versions
    return replace(
        earlier,
        versions={version: _with_workers(spec, registered.get(version)) for version, spec in earlier.versions.items()},
    )


def _with_workers(spec: VersionSpec, now: VersionSpec | None) -> VersionSpec:
    return spec if now is None or now.workers is None else replace(spec, workers=now.workers)


@click.command(cls=Verb)
@model_argument
@click.option("--dry-run", is_flag=True, help="Show the changes, and make none.")
@json_option
@click.pass_obj
def command(socket: Path | None, model: str, dry_run: bool, as_json: bool) -> None:
    """Return MODEL to its versions and settings before the latest change.

    A change is one command that registers, replaces or unregisters a version, sets settings, or chooses
    the default version; all of one `tsctl apply` are one. Numbers of workers are no change: a version
    that stays keeps its present number. The daemon keeps the state on the disk, with the unpacked
    archives, so it survives restarts and upgrades, and an archive that was overwritten since comes back
    as it was. A second `tsctl rollback` returns to the state before the first.

    Files that are served where they are, such as handler.py, are not kept: an edited one stays as it is.
    As with `tsctl apply`, a model that serves is never without a version.
    """
    from tsctl.extensions.apply.plan import plan
    from tsctl.extensions.apply.run import daemon_at
    from tsctl.render import duration_text

    if "/" in model:
        name = model.partition("/")[0]
        raise click.BadParameter(f"a rollback is of all versions: write `{name}`", param_hint="MODEL")
    daemon = daemon_at(socket)
    state = daemon.state()
    state.check_lasting(model)
    in_place = _served_in_place(state, model)
    if model not in state.earlier and in_place:
        raise CliError(
            f"no earlier state of `{model}` is kept: `{in_place[0]}` is served where it is, and what was in it before"
            " was not copied",
            "put the earlier file back, and register it again as before, with `--replace`; of an archive"
            " (`tsctl archive`) the one before is kept",
        )
    if model not in state.earlier:
        known = ", ".join(f"`{each}`" for each in sorted(state.earlier))
        raise CliError(
            f"no earlier state of `{model}` is kept", f"kept: {known}" if known else "each change keeps the one before"
        )
    now = {model: state.models[model]} if model in state.models else {}
    steps = plan(now, {model: restored(state.earlier[model], now.get(model))})
    ago = duration_text(max(0.0, time.time() - state.changed[model]))
    same = f"No change: `{model}` is as it was before the change {ago} ago"
    done = f"Rolled `{model}` back to its state before the change {ago} ago"
    note = ""
    if in_place:
        note = (
            f"`{in_place[0]}` is served where it is: versions and settings come back, not what was in the file before"
        )
    daemon.carry_out(steps, now, dry_run=dry_run, as_json=as_json, same=same, done=done, note=note)


def _served_in_place(state: "DaemonState", model: str) -> list[str]:
    """Return the paths that the model's versions are served from, those of archives left out."""
    known = state.models.get(model)
    return [] if known is None else [spec.url for spec in known.versions.values() if spec.sha256 is None]
