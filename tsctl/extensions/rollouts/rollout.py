"""`tsctl rollout`."""

from pathlib import Path
from typing import Any

import click

from tsctl.client import DaemonClient, model_path
from tsctl.extensions.rollouts.evidence import evidence_lines, rollout_heading
from tsctl.options import json_option, model_argument
from tsctl.streams import echo, echo_json
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@model_argument
@click.option("--steps", metavar="PERCENT,...", help="The new version's shares. [default: 1,10,50,100]")
@click.option("--every", metavar="TIME", help="The least time of a step, such as 30s, 2m or 1h. [default: 2m]")
@click.option(
    "--abort-if", multiple=True, metavar="CONDITION",
    help="Go back once this is shown: errors>1%, p99>1.5x, p99>200ms. [default: errors>1% and p99>1.5x]",
)  # fmt: skip
@click.option("--compare", is_flag=True, help="First compare the new version's answers, as a shadow: differs>1%.")
@click.option("--allow-effects", is_flag=True, help="Compare also if the archive does not say `retry: true`.")
@json_option
@click.pass_obj
def command(socket: Path | None, /, model: str, abort_if: tuple[str, ...], as_json: bool, **asked: Any) -> None:
    """Let MODEL/VERSION take over step by step, or show the last rollout of MODEL.

    The new version gets the share of a step for at least the given time, and until a sequential test of
    its own answers has shown that each condition is met by less than half; then it gets the next. Once a
    condition is shown to hold, or the version fails, the versions before answer all requests again.
    It needs no terminal: the daemon carries it out, also after a restart.

    `tsctl promote MODEL` and `tsctl abort MODEL` end it at once.
    """
    name, slash, version = model.partition("/")
    client, path = DaemonClient(socket), f"/models/{model_path(name)}/rollout"
    given = {option: "true" if value is True else value for option, value in asked.items() if value}
    given |= {"abort_if": ",".join(abort_if)} if abort_if else {}
    if slash:
        echo(client.json("POST", path, version=version, **given)["status"])
        return
    if given:
        raise click.UsageError(f"which version is to take over? `tsctl rollout {model}/VERSION`")
    document = client.json("GET", path)
    if as_json:
        echo_json(document)
    else:
        echo("\n".join(_lines(document)))


def _lines(document: dict[str, Any]) -> list[str]:
    name, rollout = document["modelName"], document["rollout"]
    if rollout is None:
        return [f"`{name}` has had no rollout"]
    heading = f"{name}/{rollout['version']}  {rollout_heading(rollout)}"
    return [heading, *(f"  {line}" for line in evidence_lines(rollout))]
