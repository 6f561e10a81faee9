"""`tsctl doctor`."""

import os

import click

from tsctl.options import json_option
from tsctl.streams import echo_json
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Check whether this machine can serve: limits, ports, permissions, disk, GPU, clock.

    Each warning and each problem has its remedy. Checks the running daemon's addresses and
    directories; without a daemon those of one that is started here. Exit code 1 means that
    something would break serving.
    """
    from tsctl.doctor.checks import breaks_serving, examine
    from tsctl.doctor.places import gather

    verdicts = examine(gather(ctx.obj, os.environ))
    if as_json:
        checks = [{"check": name, **each._asdict()} for name, each in verdicts.items()]
        echo_json({"serves": not breaks_serving(verdicts), "checks": checks})
    else:
        from tsctl import render

        render.verdicts([(name, *each) for name, each in verdicts.items()])
    if breaks_serving(verdicts):
        ctx.exit(1)
