"""`tsctl check`."""

import sys
from pathlib import Path
from typing import Any

import click

from tsctl.client import content_type_of
from tsctl.daemon.targets import FALLBACK_BATCH_SIZE, ServeTarget
from tsctl.errors import CliError
from tsctl.extension import extensions
from tsctl.options import content_type_option, json_option, sample_argument
from tsctl.render import batching_text, bytes_text, live
from tsctl.serving.requests import checked_target
from tsctl.serving.showing import takes_text, tensors_text
from tsctl.streams import echo, echo_json
from tsctl.terminal.relay import events_of
from tsctl.terminal.verb import Verb

CHECK = (sys.executable, "-P", "-m", "tsctl.daemon.tools.check")


@click.command(cls=Verb)
@click.argument("target", metavar="TARGET", type=click.Path())
@sample_argument
@content_type_option
@click.option(
    "--metrics-config",
    metavar="FILE",
    envvar="TSCTL_METRICS_CONFIG",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TorchServe's metrics.yaml, whose metrics the handler finds.",
)
@click.option(
    "--install-requirements",
    is_flag=True,
    envvar="TSCTL_INSTALL_REQUIREMENTS",
    help="Install the archive's requirements, for the time of the check.",
)
@json_option
def command(
    target: str, sample: Path | None, content_type: str | None, metrics_config: Path | None,
    install_requirements: bool, as_json: bool,
) -> None:  # fmt: skip
    """Load TARGET in a temporary worker and report the result. Needs no daemon.

    TARGET is an archive, a directory, or a file as for `tsctl serve`.

    With FILE, send it to the model as a request and print the answer on stdout.
    """
    read = checked_target(target, Path.cwd())
    given = [read.url, f"--model-name={read.model_name}", f"--handler={read.handler if read.kind != 'handler' else ''}"]
    if read.inferred:
        given.append(f"--fallback-batch-size={FALLBACK_BATCH_SIZE}")
    name = target.rpartition("/")[2]
    if sample is not None:
        given += ["--input", str(sample), "--content-type", content_type or content_type_of(sample)]
    if metrics_config is not None:
        given.append(f"--metrics-config={metrics_config}")
    if install_requirements:
        given.append("--install-requirements=true")
    loaded: dict[str, Any] = {}
    answer: dict[str, Any] | None = None
    with live() as progress:
        for event in events_of([*CHECK, *given], progress, "the check failed: its process"):
            match event["stage"]:
                case "unpacking":
                    done, total = bytes_text(event["done"]), bytes_text(event["total"])
                    progress.show(f"unpacking {name}, {done} of {total}", event["done"], event["total"])
                case "installing":
                    progress.show(f"installing the requirements of {name}")
                case "loading":
                    progress.show(f"loading {name}")
                case "loaded":
                    loaded = event
                    if not as_json:
                        progress.print(_shown(target, read, event))
                    progress.show(f"running {sample.name}" if sample else "stopping")
                case "answered":
                    answer = event
                case "failed":
                    raise CliError(event["message"].partition("\n")[0])  # the rest has been printed
    if as_json:
        found = {"target": target, "model": loaded, "answer": answer}
        echo_json({name: _without_stage(event) for name, event in found.items()})
    if answer is not None:
        _show_answer(answer, as_json=as_json)


def _without_stage(event: Any) -> Any:
    return {name: value for name, value in event.items() if name != "stage"} if isinstance(event, dict) else event


def _show_answer(answer: dict[str, Any], *, as_json: bool) -> None:
    """Print the answer to the sample, unless it is printed as JSON already.

    Raises:
        CliError: the request failed, or the handler returned an error's status.
    """
    if not as_json:
        echo(f"answer    status {answer['status']} after {answer['seconds'] * 1000:.0f} ms", err=True)
    if answer["error"]:
        raise CliError(answer["body"])
    if not as_json:
        echo(answer["body"])
    if answer["status"] >= 400:
        raise CliError(f"the handler returned status {answer['status']}")


def _shown(text: str, target: ServeTarget, loaded: dict[str, Any]) -> str:
    files = ", ".join(filter(None, (loaded["modelFile"], loaded["serializedFile"]))) or "none named"
    size = f", {bytes_text(target.path.stat().st_size)}" if target.path is not None and target.path.is_file() else ""
    takes = takes_text(loaded["declared"]) or tensors_text(loaded["tensors"])
    lines = (
        ("file" if target.inferred else "archive", f"{text}{size}"),
        ("model", f"{loaded['name']} {loaded['version']}"),
        ("handler", loaded["handler"]),
        *([("takes", takes)] if takes else []),
        ("files", files),
        (
            "batching",
            batching_text(loaded["batching"], loaded["batchSize"], loaded["maxBatchDelay"], loaded["mode"]),
        ),
        ("loaded", f"in {loaded['seconds']:.1f} s"),
        *(line for each in extensions() for line in each.checked(loaded)),
        *(("note", note) for note in loaded["notes"]),
    )
    return "\n".join(f"{name:<9} {text}" for name, text in lines)
