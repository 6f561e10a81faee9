"""`tsctl check`."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tsctl.client import content_type_of
from tsctl.errors import CliError
from tsctl.render import bytes_text, live

CHECK = (sys.executable, "-P", "-m", "daemon.tools.check")


@click.command
@click.argument("archive", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--input", "sample", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Request body to run."
)
@click.option(
    "--content-type",
    metavar="TYPE",
    help="Content type of the input [default: by its name for JSON and text, else none].",
)
def command(archive: Path, sample: Path | None, content_type: str | None) -> None:
    """Load ARCHIVE in a temporary worker and report the result. Needs no daemon.

    With --input, send the file to the model as a request and print the answer on stdout.
    """
    given = [str(archive)]
    if sample is not None:
        given += ["--input", str(sample), "--content-type", content_type or content_type_of(sample)]
    answer: dict[str, Any] | None = None
    with live() as progress:
        for event in _events(given):
            match event["stage"]:
                case "unpacking":
                    done, total = bytes_text(event["done"]), bytes_text(event["total"])
                    progress.show(f"unpacking {archive.name}, {done} of {total}", event["done"], event["total"])
                case "loading":
                    progress.show(f"loading {archive.name}")
                case "loaded":
                    _show(archive, event)
                    progress.show(f"running {sample.name}" if sample else "stopping")
                case "answered":
                    answer = event
                case "failed":
                    raise CliError(event["message"].partition("\n")[0])  # the worker has printed the rest
    if answer is not None:
        click.echo(f"answer    status {answer['status']} after {answer['seconds'] * 1000:.0f} ms", err=True)
        if answer["error"]:
            raise CliError(answer["body"])
        click.echo(answer["body"])
        if answer["status"] >= 400:
            raise CliError(f"the handler returned status {answer['status']}")


def _events(arguments: list[str]) -> Iterator[dict[str, Any]]:
    """Run the check as a process of its own and yield its events; the worker's output goes to stderr immediately."""
    with subprocess.Popen([*CHECK, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode not in (0, 1):
        raise CliError(f"the check failed: its process ended with exit code {process.returncode}")


def _show(archive: Path, loaded: dict[str, Any]) -> None:
    files = ", ".join(filter(None, (loaded["modelFile"], loaded["serializedFile"]))) or "none named"
    size = f", {bytes_text(archive.stat().st_size)}" if archive.is_file() else ""
    lines = (
        ("archive", f"{archive}{size}"),
        ("model", f"{loaded['name']} {loaded['version']}"),
        ("handler", loaded["handler"]),
        ("files", files),
        (
            "batching",
            f"{loaded['batching']}, at most {loaded['batchSize']} requests, {loaded['maxBatchDelay']} ms delay",
        ),
        ("loaded", f"in {loaded['seconds']:.1f} s"),
    )
    for name, text in lines:
        click.echo(f"{name:<9} {text}", err=True)
