"""`tsctl describe`."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tsctl.client import DaemonClient, model_path
from tsctl.daemon.tables import size_bars
from tsctl.errors import hint
from tsctl.extension import extensions
from tsctl.gpu_text import card_rows, gpus_of
from tsctl.options import json_option, model_argument
from tsctl.streams import echo, echo_json
from tsctl.terminal.verb import Verb
from tsctl.trouble import STYLE, beside_state


@click.command(cls=Verb)
@model_argument
@json_option
@click.pass_obj
def command(socket: Path | None, model: str, as_json: bool) -> None:
    """Show everything about MODEL, MODEL/VERSION or MODEL/all.

    With --json, prints TorchServe's describe document: a list of versions, each with the additions to
    TorchServe under the key `tsctl`.
    """
    client = DaemonClient(socket)
    documents = client.json("GET", f"/models/{model_path(model)}")
    if as_json:
        echo_json(documents)
        return
    on_gpus = any(gpus_of(each["workers"]) for each in documents)
    gpus = client.json("GET", "/tsctl/status").get("gpus", ()) if on_gpus else ()
    for index, document in enumerate(documents):
        if index:
            echo()
        show(document, gpus)


def show(document: dict[str, Any], gpus: Sequence[dict[str, Any]] = ()) -> None:
    """Print a version's document; `gpus` are those of the daemon, as its status tells them."""
    from tsctl import render

    ours = document["tsctl"]
    shared, used = ours["threads"], gpus_of(document["workers"])
    spread = document.get("parallelType", "")
    threads = f"{shared['perWorker']} for each {'process' if spread else 'worker'}, of {shared['cores']} cores"
    if shared["warning"]:
        threads += f" ({shared['warning']})"
    batching, queue = ours["batching"], document["jobQueueStatus"]
    render.facts(
        [
            ("model", f"{document['modelName']} {document['modelVersion']}"),
            ("state", render.state(ours["state"])),
            ("trouble", render.named(beside_state(ours), STYLE)),
            ("last minute", _last_minute(ours["recent"])),
            ("archive", document["modelUrl"]),
            *_routed(ours),
            ("ephemeral", "served until it is unregistered or the daemon stops" if ours.get("ephemeral") else ""),
            ("replacement", _replacement(ours["replacement"])),
            (
                "batching",
                render.batching_text(
                    batching["policy"],
                    batching["batchSize"],
                    batching["maxBatchDelay"],
                    batching.get("mode"),
                    batching.get("places"),
                    next((each["origin"] for each in ours["settings"] if each["name"] == "batchSize"), ""),
                ),
            ),
            (
                "queue",
                f"{queue['pendingRequests']} waiting, {batching['running']} running,"
                f" room for {queue['remainingCapacity']}",
            ),
            *(row for each in extensions() for row in each.described(ours, time.time())),
            ("parallel", f"{spread}, {document['parallelLevel']} for each worker" if spread else ""),
            ("threads", threads),
            *card_rows(gpus, used),
            ("timeouts", _timeouts(document)),
            ("limits", _limits(document)),
            *_declared(ours.get("declared"), ours.get("tensors"), ours.get("notes", ())),
            ("waits", ours.get("waits")),
            ("last exit", ours["lastExit"]),
            ("expired", _expired(batching["expired"])),
            ("isolated", _isolated(batching["isolated"])),
            ("quarantine", _quarantined(ours.get("quarantine"))),
        ]
    )
    if document["workers"]:
        render.heading("Workers")
        on_nodes = any(worker.get("node") for worker in document["workers"])
        rows = [
            (worker["pid"], *([worker.get("node") or "-"] if on_nodes else []), state.lower(),
             render.bytes_text(worker["memoryUsage"]), *([_on_gpus(worker)] if used else []), worker["startTime"])
            for worker, state in zip(document["workers"], _worker_states(ours), strict=False)
        ]  # fmt: skip
        render.table((">PID", *(["NODE"] if on_nodes else []), "STATE", ">MEMORY", *(["GPU"] if used else []),
                      "STARTED"), rows)  # fmt: skip
    for section in (each for extension in extensions() for each in extension.sections(ours, time.time())):
        if section.heading:
            render.heading(section.heading)
        if section.rows:
            render.table(section.columns, section.rows)
        for line in section.lines:
            render.hanging(line, 4)
    if batching["sizes"]:
        render.heading("Traffic")
        render.facts(_traffic(batching))
        render.heading("Batches by size")
        render.histogram(size_bars(batching["sizes"]))
        render.heading("Batches by reason")
        reasons = sorted(batching["reasons"].items(), key=lambda pair: -pair[1])
        render.histogram(reasons, notes=[batching["meanings"].get(reason, "") for reason, _ in reasons])
    failed = (ours["replacement"] or {}).get("error")
    if failed:
        render.heading("Error of the replacement")
        render.plain("\n".join(filter(None, (failed["message"], failed["traceback"]))))
    if ours["error"]:
        render.heading("Error")
        error = ours["error"]
        render.plain("\n".join(filter(None, (error["message"], error["traceback"], *error["output"]))))
    if ours.get("errors"):
        render.heading("Failed predictions")
        render.plain("\n".join(_failures(ours["errors"])))
    if ours.get("events"):
        from tsctl.commands.events import show as show_event

        render.heading("Last events")
        for event in ours["events"]:
            show_event(event, named=False)
    if ours["retryable"]:
        hint(f"retry with `tsctl retry {document['modelName']}/{document['modelVersion']}`")


def _last_minute(recent: dict[str, Any]) -> str:
    """Return requests, latencies and errors; empty without requests."""
    from tsctl.render import number_text

    if not (recent["requests"] or recent["errors"]):
        return ""
    requests, errors = recent["requests"], recent["errors"]
    said = [f"{requests} request{'' if requests == 1 else 's'}, {number_text(requests / (recent['seconds'] or 1))}/s"]
    if recent["p50Ms"] is not None:
        said.append(f"p50 {number_text(recent['p50Ms'])} ms, p99 {number_text(recent['p99Ms'])} ms")
    share = f" ({number_text(100 * errors / requests)} %)" if errors and errors <= requests else ""
    return ", ".join([*said, f"{errors} error{'' if errors == 1 else 's'}{share}"])


def _failures(errors: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each of the latest failures, and the traceback of the last."""
    from tsctl.commands.events import stamp_of

    lines = []
    for each in errors:
        many = f"{each['requests']} requests, the first " if each["requests"] > 1 else "request "
        message = each["message"].partition("\n")[0].replace(f" (Request {each['request']})", "")
        lines.append(f"{stamp_of(each['time'])} {each['status']} {message} ({many}{each['request']})")
    return [*lines, *errors[-1]["traceback"].rstrip().splitlines()]


def _traffic(batching: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the measured traffic of a version, which batching decides by."""
    from tsctl.render import best_size_text, number_text

    learned, turnaround = batching["learned"], batching["turnaroundMs"]
    facts = []
    if learned["batchMs"] is not None:
        source = "a guess while all batches have the same size" if learned["guess"] else "learned"
        cost = f"{number_text(learned['batchMs'])} ms + {number_text(learned['requestMs'])} ms a request"
        facts.append(("a batch takes", f"{cost} ({source})"))
    if best := best_size_text(learned):
        facts.append(("best size", best))
    beside = {kind["busy"]: kind for kind in learned.get("together", ())}  # of each number the largest batch
    if len(beside) > 1:
        texts = (f"{kind['size']} in {number_text(kind['ms'])} ms with {busy}" for busy, kind in beside.items())
        facts.append(("workers busy", ", ".join(texts)))
    facts.append(("arrivals", f"{number_text(batching['arrivalsPerSecond'])} requests/s recently"))
    regular, there = batching["regularConnections"], batching["openConnections"]
    facts.append(("connections", f"{regular} regular of {there} open"))
    if turnaround is not None:
        facts.append(("turnaround", f"{number_text(turnaround)} ms from an answer to the next request (median)"))
    facts.append(("longest hold", f"{number_text(batching['longestHoldMs'])} ms beside an idle worker"))
    return facts


def _routed(ours: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows for the model's route and shadow; empty without any."""
    if "route" not in ours:
        return []
    rows = [("route", f"{ours['share'] * 100:.3g} % of the requests ({route_text(ours['route'])})")]
    if "copies" in ours:
        copies = ", ".join(f"{count} {result}" for result, count in ours["copies"].items())
        rows.append(("shadow", f"answers of {ours['route']['shadow']}: {copies}"))
    return rows


def route_text(route: dict[str, Any]) -> str:
    parts = [" ".join(f"{version}={weight:g}" for version, weight in route["weights"].items())]
    sticky = route.get("sticky", "")
    if sticky:
        parts.append(f"sticky by {sticky.partition(':')[2] or 'address'}")
    if route.get("shadow"):
        parts.append(f"{route['sample'] * 100:.3g} % copied to {route['shadow']}")
    return ", ".join(parts)


def _replacement(replacement: dict[str, Any] | None) -> str:
    """Return how far a replacement is that is in progress, failed, or just finished; empty without one."""
    if replacement is None:
        return ""
    url = replacement["url"]
    match replacement["state"]:
        case "loading":
            return f"{url} is loading, {replacement['ready']} of {replacement['wanted']} workers ready"
        case "failed":
            return f"{url} failed to replace this version, see below"
    running, queued = replacement["running"], replacement["queued"]
    return f"{url} was replaced, and still finishes {running} running and {queued} waiting requests"


def _on_gpus(worker: dict[str, Any]) -> str:
    """Return the GPUs of a worker, each with what it holds there: `0 15.2 GiB`."""
    from tsctl.render import bytes_text

    held = worker.get("gpuMemory", {}).items()
    return ", ".join(gpu if size is None else f"{gpu} {bytes_text(size)}" for gpu, size in held) or "-"


def _timeouts(document: dict[str, Any]) -> str:
    named = {setting["name"]: setting["value"] for setting in document["tsctl"]["settings"]}
    texts = [f"{named['responseTimeout']:g} s for a batch", f"{named['startupTimeout']:g} s for loading"]
    if named["queueTimeout"]:
        texts.append(f"{named['queueTimeout']:g} s in the queue")
    if named["clientTimeoutInMills"]:
        texts.append(f"{named['clientTimeoutInMills']:g} ms for an answer")
    return ", ".join(texts)


def _limits(document: dict[str, Any]) -> str:
    """Return the memory and processor limits of each worker; empty without limits."""
    named = {setting["name"]: setting["value"] for setting in document["tsctl"]["settings"]}
    memory, cpus = named.get("maxMemory"), named.get("cpus")
    said = (f"{memory} of memory for each worker" if memory else "", f"processors {cpus}" if cpus else "")
    return ", ".join(filter(None, said))


def _declared(
    declared: dict[str, Any] | None, tensors: dict[str, Any] | None, notes: Sequence[str]
) -> list[tuple[str, str]]:
    """Return rows for the inputs and the answer of a typed handler or a model's file, and for the notes."""
    rows = []
    if tensors:
        from tsctl.serving.showing import tensors_text

        rows.append(("takes", tensors_text(tensors)))
    if declared is not None:
        from tsctl.serving.showing import inputs_text

        rows.append(("takes", inputs_text(declared) or "nothing"))
        if declared["output"]:
            rows.append(("answers", declared["output"]))
    return [*rows, *(("note", note) for note in notes)]


def _expired(expired: dict[str, int]) -> str:
    """Return where requests have expired; empty without any."""
    return f"{expired['queue']} in the queue, {expired['worker']} with a worker" if any(expired.values()) else ""


def _isolated(isolated: dict[str, int]) -> str:
    """Return how many failed batches had their requests run one by one; empty without any."""
    batches, failed = isolated["batches"], isolated["requestsFailed"]
    text = f"batches run again row by row or in halves: {batches}, requests that also failed alone: {failed}"
    return text if batches else ""


def _quarantined(quarantine: dict[str, int] | None) -> str:
    """Return what is known of requests that crash workers; empty without any."""
    if quarantine is None:
        return ""  # the daemon is without it
    texts = []
    if quarantine["crashesInARow"]:
        texts.append(f"workers that crashed in a row while running requests: {quarantine['crashesInARow']}")
    if quarantine["suspects"]:
        suspects, refused = quarantine["suspects"], quarantine["refused"]
        texts.append(f"suspected requests: {suspects}, of these refused for now: {refused}")
    if quarantine["requestsRefused"]:
        texts.append(f"refused so far: {quarantine['requestsRefused']}")
    return "; ".join(texts)


def _worker_states(ours: dict[str, Any]) -> list[str]:
    return [state for state in ours["workers"] if state not in ("EMPTY", "BACKOFF", "GAVE_UP")]
