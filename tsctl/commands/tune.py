"""`tsctl tune`."""

import json
import time
from pathlib import Path
from typing import Any

import click

from daemon import paths
from tsctl.client import DaemonClient, model_path
from tsctl.errors import CliError
from tsctl.options import content_type_option, input_option, json_option, model_argument
from tsctl.streams import echo
from tsctl.terminal.verb import Verb

_MORE_THAN_ZERO = click.FloatRange(min=0, min_open=True)


@click.command(cls=Verb)
@model_argument
@click.option(
    "--slo-p99", type=_MORE_THAN_ZERO, metavar="MS", help="Target: 99 % of requests answered within MS milliseconds."
)
@input_option
@content_type_option
@click.option(
    "--clients",
    type=click.IntRange(min=1),
    metavar="N",
    help="Assume N clients that wait for their answers (closed loop).",
)
@click.option("--rate", type=_MORE_THAN_ZERO, metavar="R", help="Assume R independent requests per second (open loop).")
@click.option(
    "--max-batch-size",
    type=click.IntRange(min=1),
    default=32,
    metavar="N",
    help="Largest batch size to try [default: 32].",
)
@click.option(
    "--workers", type=click.IntRange(min=1), multiple=True, metavar="N",
    help="Number of workers to try; may be repeated [default: 1, 2, 4 … one per core].",
)  # fmt: skip
@click.option(
    "--seconds",
    type=_MORE_THAN_ZERO,
    default=1.0,
    metavar="S",
    help="Duration of each measurement in seconds [default: 1].",
)
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
    """Measure MODEL, simulate its traffic with other settings, and recommend the best.

    Measures the time of batches of each size in temporary workers, then replays the recorded arrival
    times of requests (no bodies) in a simulator. If too few were recorded, describe the load with
    --clients or --rate. If clients wait for their answers, the best settings are then tested with as
    many clients. MODEL serves throughout; run this command while the load is low. `tsctl console` draws
    the result.

    \b
    The recommended setting has the highest capacity of those with
      a p99 latency of at most MS           if --slo-p99 is given
      a p99 latency within 5 % of the best  otherwise
    """
    if clients is not None and rate is not None:
        raise click.UsageError("`--clients` and `--rate` are two kinds of load: use one of them")
    from tsctl.tuning.inputs import sample_input, surroundings

    client = DaemonClient(socket)
    path = model_path(model)
    trace = client.json("GET", f"/tsctl/trace/{path}")
    mode = trace.get("batching", {}).get("mode", "batch")
    if mode != "batch":
        raise CliError(
            f"{model} runs its requests on their own (`{mode}`): there is no batch size and no delay to measure"
        )
    worker = client.json("GET", f"/tsctl/worker/{path}")
    body, kind, source = sample_input(client, path, sample, content_type)
    said = {each["name"]: each for each in client.json("GET", "/tsctl/config")}
    order = {
        "trace": trace,
        "worker": worker,
        "settings": surroundings(said),
        "contentType": kind,
        "most": max_batch_size,
        "workers": workers,
        "clients": clients,
        "rate": rate,
        "seconds": seconds,
        "slo": None if slo_p99 is None else slo_p99 / 1000,
    }
    from tsctl import render
    from tsctl.tuning import process, report, saved

    found, measured, notes = process.run(order, body, trace["modelName"])
    name = f"{trace['modelName']}/{trace['modelVersion']}" if "/" in model else trace["modelName"]
    del found["stage"]
    found |= {"model": trace["modelName"], "version": trace["modelVersion"], "batchTimes": measured, "notes": notes}
    best = None if found["recommended"] is None else found["frontier"][found["recommended"]]
    found["commands"] = [] if best is None else commands(name, best, trace)
    if trace["silence"] is not None and trace["silence"] < 1.0:
        notes.append("requests were served during the measurement, so batches took longer than on an idle machine")
    try:
        state = said.get("state_dir")
        saved.save(Path(state["value"]) if state else paths.default_state_dir(), found | {"time": time.time()})
    except (OSError, paths.PathError) as error:
        notes.append(f"`tsctl console` cannot show this result, as it could not be saved: {error}")
    for note in notes:
        render.note(note)
    if as_json:
        echo(json.dumps(found, indent=2))
    else:
        report.show(found, f"{len(body)} B of {source}")
    if best is None:
        raise _none_will_do(found, slo_p99)
    if applied:
        _apply(client, path, best, trace)


def commands(name: str, best: dict[str, Any], trace: dict[str, Any]) -> list[str]:
    """Return the commands that apply the settings in `best`; empty if the model already has them."""
    asked = []
    now = trace["settings"]
    if any(best[key] != now[key] for key in ("batchSize", "maxBatchDelay", "batching")):
        asked.append(
            f"tsctl set {name} --batch-size {best['batchSize']} --max-delay {best['maxBatchDelay']:g}"
            f" --batching {best['batching']}"
        )
    if best["workers"] != trace["workers"]:
        asked.append(f"tsctl scale {name} --workers {best['workers']}")
    return asked


def _apply(client: DaemonClient, path: str, best: dict[str, Any], trace: dict[str, Any]) -> None:
    from tsctl.progress import work

    client.json(
        "PATCH", f"/models/{path}", batch_size=best["batchSize"], max_batch_delay=best["maxBatchDelay"],
        batching=best["batching"],
    )  # fmt: skip
    workers = best["workers"]
    if workers != trace["workers"]:
        name = trace["modelName"]
        hint = f"`tsctl describe {name}` shows its progress"
        work(
            client, "PUT", f"/models/{path}", subject=name, hint=hint, min_worker=workers, max_worker=workers,
            synchronous="true",
        )  # fmt: skip
    echo(
        f"Serving `{trace['modelName']}` {trace['modelVersion']} with batch size {best['batchSize']}, delay"
        f" {best['maxBatchDelay']:g} ms, {best['batching']}, {workers} worker{'s' * (workers > 1)}",
        err=True,
    )


def _none_will_do(found: dict[str, Any], slo_p99: float | None) -> CliError:
    able = [point for point in found["frontier"] if point["keepsUp"]]
    if not able:
        return CliError("no setting keeps up with this load", "use a larger machine, or a smaller model")
    least = min(point["p99"] for point in able) * 1000
    return CliError(
        f"no setting answers 99 % of these requests within {slo_p99:g} ms; the lowest p99 is {least:.3g} ms"
    )
