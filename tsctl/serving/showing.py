"""Collect what is shown of a served model: the registration's answer, the declared inputs, a sample request."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tsctl.client import DaemonClient, model_path
from tsctl.daemon.targets import ServeTarget
from tsctl.errors import CliError
from tsctl.render import batching_text
from tsctl.serving import sample
from tsctl.serving.session import Served

LONGEST = 400  # characters of a value in a command
_SINGLE = re.compile(r"list\[(float|int|bool)\]")
_TOKEN = "TSCTL_INFERENCE_TOKEN"


def model_lines(client: DaemonClient, status: Mapping[str, Any], served: Served, samples: Path) -> list[str]:
    """Return the lines about one model; the last one is the command that asks the model.

    Args:
        samples: the directory for files of sample requests, which are written there.
    """
    path = model_path(f"{served.name}/{served.version}")
    document = client.json("GET", f"/models/{path}")[0]
    worker = client.json("GET", f"/tsctl/worker/{path}")
    ours = document["tsctl"]
    declared = sample.declared_inputs(ours["declared"])
    image = samples / "sample.png"
    if declared:
        structs = sample.structs_of(_source(served))
        beside = sample.sample_beside(served.target) if len(declared) == 1 else None
        parts = [(each.name, sample.declared_part(each, structs, image, beside)) for each in declared]
    elif tensors := ours["tensors"]:
        parts = [("data", sample.tensors_part(tensors["inputs"]))]
    else:
        parts = [("data", _undeclared(served.target, _warmup(client, path, samples), image, ours.get("builtIn")))]
    parts = [(name, _in_a_file(part, samples / "sample.json")) for name, part in parts]
    for file, make in ((image, sample.png), (image.with_suffix(".wav"), sample.wav)):
        if any(part.file == file for _, part in parts):
            file.write_bytes(make())
    address = status.get("inferenceAddress")
    url = f"{address or 'http://localhost'}/predictions/{model_path(served.name)}"
    curl = sample.curl_line(
        url, parts, socket="" if address else str(status["socket"]), token=_TOKEN if _TOKEN in os.environ else ""
    )
    size, delay, batching = document["batchSize"], document["maxBatchDelay"], ours["batching"]
    batches = "1 request · no delay" if size == 1 else f"up to {size} requests · {delay:g} ms"
    batches = f"{batches} · {batching['policy']}"
    if batching["mode"] != "batch":
        batches = batching_text(batching["policy"], size, delay, batching["mode"], batching["places"])
    facts = [
        ("model", f"{served.name} {served.version}"),
        ("handler", str(worker["handler"])),
        ("takes", takes_text(ours["declared"]) or tensors_text(ours["tensors"])),
        ("batches", batches),
        ("URL", url),
        *(("note", note) for note in ours["notes"]),
    ]
    certain = all(part.certain for _, part in parts)
    lines = [f"{name:<9}{text}" for name, text in facts if text]
    return [*lines, "" if certain else "with data of your own in place of this sample:", curl]


def _undeclared(
    target: ServeTarget, warmup: sample.SamplePart | None, image: Path, kind: str | None
) -> sample.SamplePart:
    """Return a body for a handler that declares nothing; a subclass of a built-in one takes what that does."""
    part = sample.undeclared_part(target, warmup, image)
    return sample.SamplePart("image/png", file=image) if kind == "image" and not part.certain else part


def inputs_text(declared: Mapping[str, Any]) -> str:
    """Return the inputs of a typed handler; of a batch of single numbers, which looks like a list, a request's."""
    shown = []
    for each in declared["inputs"]:
        text = each["annotation"] or each["kind"]
        one = _SINGLE.fullmatch(text) if declared["batches"] else None
        shown.append(f"{each['name']}: {text}{f' (one {one[1]} in each request)' if one else ''}")
    return ", ".join(shown)


def takes_text(declared: Mapping[str, Any] | None) -> str:
    """Return the inputs of a typed handler as its author wrote them, and the answer; empty for any other handler."""
    if not declared:
        return ""
    inputs = inputs_text(declared)
    return f"{inputs} -> {declared['output']}" if declared.get("output") else inputs


def tensors_text(tensors: Mapping[str, Any] | None) -> str:
    """Return the tensors of one row that the model's file tells; empty for any other model."""
    if not tensors:
        return ""
    inputs, outputs = (", ".join(map(_tensor_text, tensors[each])) for each in ("inputs", "outputs"))
    return f"{inputs} -> {outputs}" if outputs else inputs


def _tensor_text(tensor: Mapping[str, Any]) -> str:
    return f"{tensor['name']}: {tensor['datatype']} {tensor['shape']}" if tensor["datatype"] else str(tensor["name"])


def _in_a_file(part: sample.SamplePart, file: Path) -> sample.SamplePart:
    """Return a part whose text is in a file if it is too long for a command."""
    if len(part.text) <= LONGEST:
        return part
    file.write_text(part.text)
    return part._replace(text="", file=file)


def _source(served: Served) -> str:
    file = served.target.path
    return file.read_text(errors="replace") if file is not None and file.suffix == ".py" else ""


def _warmup(client: DaemonClient, path: str, samples: Path) -> sample.SamplePart | None:
    """Return the sample that model-config.yaml names, as a file."""
    try:
        answer = client.request("GET", f"/tsctl/input/{path}")
    except CliError:
        return None
    if answer.status != 200:
        return None
    file = samples / "sample"
    file.write_bytes(answer.body)
    return sample.SamplePart(answer.content_type or "application/octet-stream", file=file)
