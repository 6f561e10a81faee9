"""`tsctl predict`."""

import sys
from pathlib import Path

import click

from tsctl.client import DaemonClient, checked, content_type_of, model_path
from tsctl.errors import CliError
from tsctl.options import model_argument


@click.command
@model_argument
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--content-type", metavar="TYPE", help="Content type of FILE [default: by its name for JSON and text, else none]."
)
@click.pass_obj
def command(socket: Path | None, model: str, file: Path, content_type: str | None) -> None:
    """Send FILE (`-` is stdin) to MODEL and print the unchanged answer on stdout."""
    try:
        body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise CliError(f"cannot read `{file}`: {error.strerror}") from None
    if content_type is None:
        content_type = content_type_of(file)
    headers = {"Content-Type": content_type} if content_type else {}
    answer = DaemonClient(socket).request("POST", f"/predictions/{model_path(model)}", body, headers)
    if answer.status >= 400:
        _fail(answer.status, answer.body)
    sys.stdout.buffer.write(answer.body)
    if sys.stdout.isatty() and not answer.body.endswith(b"\n"):
        click.echo()


def _fail(status: int, body: bytes) -> None:
    import json

    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict) or "message" not in document:  # the handler set the status and the body
        document = {"message": f"the model answered with status {status}\n{body.decode('utf-8', 'replace')}"}
    checked(status, document)
