"""`tsctl apply`."""

import sys
from pathlib import Path

import click

from tsctl.options import json_option
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Show the changes, and make none.")
@click.option("--keep-others", is_flag=True, help="Keep models that FILE does not name.")
@json_option
@click.pass_obj
def command(socket: Path | None, file: Path, dry_run: bool, keep_others: bool, as_json: bool) -> None:
    """Make the registered models as FILE says: register, replace, set, scale, unregister.

    FILE names every model; others are unregistered, unless --keep-others is given. `tsctl export`
    writes such a file. Applied again, it changes nothing. FILE may be - for stdin.

    \b
    models:
      scorer:
        source: scorer.mar      a path from FILE's folder, a name in the model
                                store, MODULE:ATTRIBUTE, or a URL
        version: "2.0"          needed for a URL
        sha256: 5e88…           the archive must have this SHA-256
        workers: 2              without it, the number stays as it is
        settings:               as in model-config.yaml
          batchSize: 8
      finder:
        default: "1.0"
        versions:
          "1.0": {source: finder-1.mar}
          "2.0": {source: finder-2.mar}

    New versions are loaded first, then settings and workers change, then the default versions, and
    versions that are left over go last: a model that serves is never without a version. If a change
    fails, those before it are undone. `tsctl rollback MODEL` returns to the state before.
    """
    from tsctl.extensions.apply.file import parse, read_file
    from tsctl.extensions.apply.plan import only, plan
    from tsctl.extensions.apply.run import daemon_at

    daemon = daemon_at(socket)
    if str(file) == "-":
        wanted = parse(sys.stdin.read(), "stdin", Path.cwd(), daemon.store)
    else:
        wanted = read_file(file, daemon.store)
    state = daemon.state()
    for name in wanted:
        state.check_lasting(name)
    now = only(state.models, wanted) if keep_others else state.models
    steps = plan(now, wanted)
    same = f"No change: the models are as `{file}` says"
    done = f"Applied {len(steps)} change{'' if len(steps) == 1 else 's'}"
    daemon.carry_out(steps, now, dry_run=dry_run, as_json=as_json, same=same, done=done)
