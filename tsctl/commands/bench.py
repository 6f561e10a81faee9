"""`tsctl bench`."""

from pathlib import Path
from typing import Any

import click

from tsctl.client import DaemonClient, content_of, content_type_of, model_path
from tsctl.daemon.tables import size_bars
from tsctl.errors import CliError, hint
from tsctl.generator import BUSY, MOST_CONNECTIONS, call_way_to, failure_texts, generator, way_to
from tsctl.options import MORE_THAN_ZERO, content_type_option, json_option, model_argument
from tsctl.streams import echo, echo_json
from tsctl.tensors.bodies import METHOD, write_binary_body, write_grpc_message
from tsctl.tensors.requests import RequestInTensors, read_inference_request
from tsctl.terminal.verb import Verb

SECONDS = 10.0
LACKING = 0.05  # of the time: waiting for a core below this share is not reported


@click.command(cls=Verb)
@model_argument
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "-c",
    "--clients",
    type=click.IntRange(min=1),
    metavar="N",
    help="Clients at once, each waits for its answers [default: 8].",
)
@click.option("--rate", type=MORE_THAN_ZERO, metavar="R", help="Start R requests per second (open loop).")
@click.option("-n", "--requests", type=click.IntRange(min=1), metavar="N", help="Stop after N requests.")
@click.option("-t", "--seconds", type=MORE_THAN_ZERO, metavar="S", help="Stop after S s [default: 10].")
@click.option(
    "--spacing",
    type=click.Choice(["poisson", "constant"]),
    default="poisson",
    help="Arrivals with --rate: random, as of independent users [default], or even.",
)
@click.option(
    "--timeout",
    type=MORE_THAN_ZERO,
    default=60.0,
    metavar="S",
    help="Timeout of an answer, in seconds [default: 60].",
)
@content_type_option
@click.option(
    "--protocol",
    type=click.Choice(["predictions", "v2", "grpc"]),
    default="predictions",
    help="Route: `/predictions` [default], or the Open Inference Protocol's over HTTP (`v2`) or gRPC (`grpc`), with its"
    " JSON request in FILE. With `grpc` and `--binary`, FILE may also hold the bytes of the model's one input.",
)
@click.option(
    "--binary", is_flag=True, help="With `--protocol v2`, send and ask for binary tensors, as gRPC always does."
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Token for predictions [default: TSCTL_INFERENCE_TOKEN, TSCTL_TOKEN, the daemon's file].",
)
@json_option
@click.pass_obj
def command(
    socket: Path | None,
    model: str,
    file: Path,
    clients: int | None,
    rate: float | None,
    requests: int | None,
    seconds: float | None,
    spacing: str,
    timeout: float,
    content_type: str | None,
    protocol: str,
    binary: bool,
    token_file: Path | None,
    as_json: bool,
) -> None:
    """Send FILE (`-` is stdin) to MODEL repeatedly; measure latency and throughput.

    \b
    Two kinds of load:
      -c N      closed loop: N clients, each sends its next request when the
                answer arrives. Measures the model's capacity.
      --rate R  open loop: R requests start per second, whether the model keeps
                up or not. Measures the latency of independent users, counted
                from each request's scheduled start.

    Latencies count successful answers (2xx, OK) only. Ctrl-C ends the run and shows the result so far.
    """
    if rate is not None and clients is not None:
        raise click.UsageError("`--clients` and `--rate` are two kinds of load: use one of them")
    if binary and protocol != "v2":
        raise click.UsageError("`--binary` belongs to `--protocol v2`; gRPC is binary anyway")
    body = content_of(file)
    client = DaemonClient(socket)
    before = _batching(client, model)
    if protocol == "grpc":
        name, _, version = model.partition("/")
        way = call_way_to(client, token_file) | {"target": METHOD}
        body = write_grpc_message(_tensors(client, model, body), name, version)
    else:
        headers: list[list[str]] = []
        if binary:
            body, headers = write_binary_body(_tensors(client, model, body))
            content_type = ""
        elif protocol == "v2":
            content_type = content_type or "application/json"
        way = way_to_order(client, model, file, content_type, token_file)
        way |= {"headers": [*way["headers"], *headers], "target": target_of(model, protocol)}
    order = way | {
        "connections": clients or (8 if rate is None else MOST_CONNECTIONS),
        "rate": rate,
        "spacing": spacing,
        "requests": requests,
        "seconds": seconds if seconds is not None or requests is not None else SECONDS,
        "timeout": timeout,
    }
    found = _run(order, body, model)
    after = _batching(client, model)
    found["batches"] = {what: _gained(before[what], after[what]) for what in ("sizes", "reasons")}
    load = {name: order[name] for name in ("connections", "rate", "spacing")}
    document = {"model": model, "bodyBytes": len(body), "load": load if rate else {"connections": load["connections"]}}
    from tsctl.render import best_size_text

    if as_json:
        del found["stage"]
        echo_json(document | found)
    else:
        show(document | found | {"bestSize": best_size_text(after.get("learned", {}))})
    for note in notes(found):
        echo(note, before=f"{click.style('note:', fg='yellow')} ", err=True)
    if any(status.startswith("5") for status in found["statuses"]):
        hint(f"`tsctl describe {model}` shows why requests failed")
    if not found["latency"]["max"]:
        raise CliError(f"no request was answered with {'OK' if protocol == 'grpc' else 'status 2xx'}")


def _tensors(client: DaemonClient, model: str, content: bytes) -> RequestInTensors:
    """Return the request in a file; the metadata of the model are asked for where they are needed."""
    try:
        return read_inference_request(
            content, lambda: client.json("GET", target_of(model, "v2").removesuffix("/infer"))
        )
    except ValueError as error:
        raise CliError(f"FILE is no inference request: {error}") from None


def way_to_order(
    client: DaemonClient, model: str, file: Path, content_type: str | None, token_file: Path | None
) -> dict[str, Any]:
    """Return the part of an order that holds the target, the headers and the address."""
    way = way_to(client, token_file)
    kind = content_type if content_type is not None else content_type_of(file)
    headers = [*way.pop("headers", []), *([["Content-Type", kind]] if kind else [])]
    return way | {"target": target_of(model), "headers": headers}


def target_of(model: str, protocol: str = "predictions") -> str:
    """Return the path of a model's predictions, or of its inference requests by the Open Inference Protocol, `v2`."""
    path = model_path(model)
    return (
        f"/predictions/{path}" if protocol == "predictions" else f"/v2/models/{path.replace('/', '/versions/')}/infer"
    )


def _batching(client: DaemonClient, model: str) -> dict[str, Any]:
    batching: dict[str, Any] = client.json("GET", f"/models/{model_path(model)}")[0]["tsctl"]["batching"]
    return batching


def _gained(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Return the counts added between two snapshots; a model registered anew in between started at zero."""
    gained = {name: count - before.get(name, 0) for name, count in after.items()}
    if any(count < 0 for count in gained.values()):
        gained = dict(after)
    return {name: count for name, count in gained.items() if count}


def _run(order: dict[str, Any], body: bytes, model: str) -> dict[str, Any]:
    """Run the load generator until its end or Ctrl-C; return its final counts."""
    from tsctl.render import live

    requests, seconds = order["requests"], order["seconds"]
    with generator(order, body) as running, live() as progress:
        progress.show(f"the first request to {model}")
        for attempt in range(2):
            try:
                for event in running.events():
                    if event["stage"] == "done":
                        return event
                    errors = f", {event['errors']} errors" if event["errors"] else ""
                    text = (
                        f"{model}: {event['requests']} requests, {event['requests'] / event['seconds']:.0f}/s{errors}"
                    )
                    by_count = event["requests"] / requests if requests else 0.0
                    by_time = event["seconds"] / seconds if seconds else 0.0
                    progress.show(text, min(1.0, max(by_count, by_time)), 1.0)
            except KeyboardInterrupt:
                if attempt:
                    raise
                running.break_off()
        raise CliError("the load generator ended without a result")


def notes(found: dict[str, Any]) -> list[str]:
    said = []
    used, waited = found["generatorCpu"], found["generatorWaited"]
    if used + waited >= BUSY:
        without = f", and waited for a core {waited:.0%} of the time" if waited >= LACKING else ""
        said.append(
            f"the load generator itself used {used:.0%} of a core{without}:"
            " the generator, not the model, may be the bottleneck (wrk needs less CPU)"
        )
    if found["brokenOff"]:
        said.append("interrupted: these are the results so far")
    return said


def show(document: dict[str, Any]) -> None:
    """Print the result as text. The figures come last: they stay on a terminal of 24 lines, whatever is above them."""
    from tsctl import render

    latency, batches = document["latency"], document["batches"]
    if batches["sizes"]:
        render.heading("Batches by reason")
        render.histogram(list(batches["reasons"].items()))
        render.heading("Batches by size")
        render.histogram(size_bars(batches["sizes"]))
    if latency["max"]:
        render.heading("Latency")
        render.histogram([(f"≤ {_time(bar['upTo'])}", bar["count"]) for bar in document["histogram"]])
        echo()
        names = ("p50", "p90", "p95", "p99", "p99.9", "max", "mean")
        render.table(
            [f">{name}" for name in names],
            [[_time(latency[name]) for name in names]],
            drop=("p99.9", "p90", "mean", "p95"),
        )
        echo()
    render.facts(_facts(document))


def _facts(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows of the result; the throughput is the last."""
    from tsctl.render import bytes_text

    load = document["load"]
    if "rate" in load:
        kind = f"open loop, {load['rate']:g} requests a second, {load['spacing']} spacing"
    else:
        clients = load["connections"]
        kind = f"closed loop, {clients} client{'' if clients == 1 else 's'}"
    return [
        ("best size", document.get("bestSize", "")),
        ("model", f"{document['model']}, {bytes_text(document['bodyBytes'])} a request"),
        ("load", f"{kind}, for {document['seconds']:.1f} s"),
        ("requests", f"{document['requests']}, the first alone in {_time(document['first'])}"),
        ("errors", ", ".join(failure_texts(document)) or "none"),
        ("throughput", f"{document['requestsPerSecond']:.1f} good answers a second"),
    ]


def _time(seconds: float) -> str:
    """Write a latency with three digits."""
    if seconds >= 1.0:
        return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"
    return f"{seconds * 1000:.3g} ms" if seconds >= 0.001 else f"{seconds * 1e6:.0f} µs"
