"""`tsctl tune`."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsctl.client import DaemonClient, model_path
from tsctl.daemon import paths
from tsctl.errors import CliError
from tsctl.options import MORE_THAN_ZERO, content_type_option, json_option, model_argument, sample_argument
from tsctl.streams import echo, echo_json
from tsctl.terminal.verb import Verb

if TYPE_CHECKING:
    from tsctl.tuning.choice import TriedSetting

_PATIENCE = 60.0  # seconds that a request may wait in the queue


@click.command(cls=Verb)
@model_argument
@sample_argument
@click.option(
    "--slo-p99", type=MORE_THAN_ZERO, metavar="MS", help="Target: 99 % of requests answered within MS milliseconds."
)
@content_type_option
@click.option(
    "-c", "--clients", type=click.IntRange(min=1), metavar="N",
    help="Measure with N clients at once, each waits for its answers [default: the largest batch size].",
)  # fmt: skip
@click.option("--rate", type=MORE_THAN_ZERO, metavar="R", help="Measure with R requests per second (open loop).")
@click.option(
    "--max-batch-size", type=click.IntRange(min=1), default=32, metavar="N",
    help="Largest batch size to try [default: 32].",
)  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(min=1), multiple=True, metavar="N",
    help="Number of workers to try; may be repeated [default: 1, 2, and as many as now].",
)  # fmt: skip
@click.option(
    "--seconds", type=MORE_THAN_ZERO, default=2.0, metavar="S",
    help="Duration of each measurement in seconds [default: 2].",
)  # fmt: skip
@click.option("--apply", "applied", is_flag=True, help="Apply the recommended settings.")
@json_option
@click.pass_obj
def command(
    socket: Path | None,
    model: str,
    slo_p99: float | None,
    sample: Path | None,
    content_type: str | None,
    clients: int | None,
    rate: float | None,
    max_batch_size: int,
    workers: tuple[int, ...],
    seconds: float,
    applied: bool,
    as_json: bool,
) -> None:
    """Measure MODEL with a few settings in turns, and recommend one.

    Serves the model in temporary workers under one setting after the other: as it is set now; with the
    policy `auto`; batch sizes 1, 8, and the largest; 1 and 2 workers. Each gets FILE as its requests, by
    default the recorded request or the archive's `warmup`, in three rounds. MODEL serves throughout; run
    this command while the load is low. The result is kept in the state directory.

    \b
    GAIN   times the requests a second of now, the median of the rounds
    NOISE  how far the rounds are from it: a smaller gain is none

    The recommended setting answers the most requests a second; with --slo-p99 MS, of those with a p99
    latency of at most MS.
    """
    if clients is not None and rate is not None:
        raise click.UsageError("`--clients` and `--rate` are two kinds of load: use one of them")
    from tsctl import render
    from tsctl.tuning import report
    from tsctl.tuning.choice import commands, present_setting, setting_text, settings_to_try
    from tsctl.tuning.inputs import sample_input, surroundings
    from tsctl.tuning.measuring import OfferedLoad, measure
    from tsctl.tuning.verdict import judge

    client = DaemonClient(socket)
    path = model_path(model)
    worker = client.json("GET", f"/tsctl/worker/{path}")
    batching = worker["batching"]
    if batching["mode"] != "batch":
        raise CliError(
            f"{model} runs its requests on their own (`{batching['mode']}`): there is no batch size and no delay to"
            " measure"
        )
    if not worker["anyWorker"]:
        raise CliError(f"{model} keeps its clients' states between requests, which one repeated request cannot measure")
    body, kind, source = sample_input(client, path, sample, content_type)
    said = {each["name"]: each for each in client.json("GET", "/tsctl/config")}
    now = present_setting(worker)
    if rate is None:
        clients = clients or max_batch_size
    way = {"target": f"/predictions/{path}", "headers": [["Content-Type", kind]] if kind else []}
    load = OfferedLoad(clients, rate, way, body, _PATIENCE + worker["settings"]["responseTimeout"])

    def choose(cores: int) -> "list[TriedSetting]":
        return settings_to_try(
            now, cores, most=max_batch_size, workers=workers, clients=clients, batch_ms=batching["learned"]["batchMs"]
        )

    order = {"model": worker, "settings": surroundings(said), "bodyBytes": len(body)}
    measured, notes = measure(order, load, seconds, choose, worker["modelName"])
    verdict = judge(measured, None if slo_p99 is None else slo_p99 / 1000, rate)
    most = worker["settings"]["jobQueueSize"]
    if clients is not None and clients > most and any("status 503" in each.failure for each in measured):
        notes.append(
            f"{clients} clients ask at once, and the queue takes {most} requests: measure with `--clients {most}`, or"
            f" let more wait with `tsctl set {model} --queue-jobs {clients}`"
        )
    if batching["arrivalsPerSecond"] >= 1:
        notes.append("the model was answering other requests, so these took longer than on an idle machine")
    name = f"{worker['modelName']}/{worker['modelVersion']}" if "/" in model else worker["modelName"]
    best = None if verdict.best is None else measured[verdict.best].setting
    found = {"model": worker["modelName"], "version": worker["modelVersion"], "seconds": seconds, "notes": notes}
    found |= report.document(measured, verdict, load)
    found["commands"] = [] if best is None else commands(name, best, now)
    _save(found, said)
    for note in notes:
        render.note(note)
    if as_json:
        echo_json(found)
    else:
        report.show(found, f"{len(body)} B of {source}", batching["learned"])
    if best is None:
        raise CliError(verdict.sentence)
    if applied and best != now:
        _apply(client, path, best, worker)
        echo(f"Serving `{worker['modelName']}` {worker['modelVersion']} with {setting_text(best, now)}", err=True)


def _save(found: dict[str, Any], said: dict[str, Any]) -> None:
    from tsctl.tuning import saved_results

    try:
        state = said.get("state_dir")
        saved_results.save(Path(state["value"]) if state else paths.default_state_dir(), found | {"time": time.time()})
    except (OSError, paths.PathError) as error:
        found["notes"].append(f"this result could not be kept for later: {error}")


def _apply(client: DaemonClient, path: str, best: "TriedSetting", worker: dict[str, Any]) -> None:
    from tsctl.progress import work

    client.json(
        "PATCH", f"/models/{path}", batch_size=best.batch_size, max_batch_delay=best.max_delay, batching=best.batching
    )
    if best.workers != worker["workers"]:
        name, numbers = worker["modelName"], {"min_worker": best.workers, "max_worker": best.workers}
        hint = f"`tsctl describe {name}` shows its progress"
        work(client, "PUT", f"/models/{path}", subject=name, hint=hint, synchronous="true", **numbers)
