"""`tsctl route`."""

from pathlib import Path
from typing import Any

import click

from tsctl.client import DaemonClient, model_path
from tsctl.completion import complete_weight
from tsctl.options import json_option, model_argument
from tsctl.streams import echo, echo_json
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@model_argument
@click.argument("weights", nargs=-1, metavar="[VERSION=WEIGHT]...", shell_complete=complete_weight)
@click.option(
    "--sticky", metavar="header|header:NAME|ip",
    help="Keep a client at its version: by a header, X-Session-Id unless named, or by its address.",
)  # fmt: skip
@click.option("--shadow", metavar="VERSION", help="Send copies of requests to VERSION, and drop its answers.")
@click.option("--sample", metavar="SHARE", help="The share of the requests that is copied, such as 5%.")
@click.option("--allow-effects", is_flag=True, help="Copy requests to a shadow that is not declared repeatable.")
@click.option("--remove", is_flag=True, help="Remove the route; the default version answers.")
@json_option
@click.pass_obj
def command(
    socket: Path | None, /, model: str, weights: tuple[str, ...], remove: bool, as_json: bool, **asked: Any
) -> None:
    """Share the requests for MODEL that name no version among its versions.

    Weights are relative: `1.0=90 2.0=10` sends nine of ten requests to 1.0. A route replaces the
    default version, is kept over restarts, and counts at once for HTTP and gRPC. Without weights, the
    route is shown.

    A request that names its version, in its path or by the header X-Model-Version, is not routed.
    """
    if "/" in model:
        raise click.BadParameter(f"`{model}` names a version: a route is the model's", param_hint="MODEL")
    client, path = DaemonClient(socket), f"/models/{model_path(model)}/route"
    given = {name: value for name, value in asked.items() if value}
    if (given or remove) and not weights and not (remove and not given):
        raise click.UsageError(f"the route has no versions: `tsctl route {model} 1.0=90 2.0=10`")
    if remove and weights:
        raise click.UsageError("`--remove` takes no versions")
    if remove:
        echo(client.json("DELETE", path)["status"])
    elif weights:
        named = {name: "true" if value is True else value for name, value in given.items()}
        document = client.json("PUT", path, weights=" ".join(weights), **named)
        echo(document["status"])
    else:
        _show(client.json("GET", path), as_json=as_json)


def _show(document: dict[str, Any], *, as_json: bool) -> None:
    from tsctl.commands.describe import route_text

    if as_json:
        echo_json(document)
        return
    name, route = document["modelName"], document["route"]
    if route is None:
        echo(f"`{name}` has no route: version {document['default']} answers")
    else:
        echo(f"`{name}` is routed: {route_text(route)}")
