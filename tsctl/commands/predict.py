"""`tsctl predict`."""

import base64
import codecs
import json
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import click

from tsctl.client import DaemonClient, content_of, content_type_of, model_path, pieces_of, refuse
from tsctl.daemon.setting_values import size_text
from tsctl.errors import CliError
from tsctl.options import model_argument
from tsctl.streams import echo, echo_json, write
from tsctl.terminal.verb import Verb

_TEXTUAL = ("application/json", "application/x-ndjson", "application/xml", "application/yaml")
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r")) + b"\x7f"

_FAILED = "InternalServerException"  # the kind of the daemon's error
_AS_JSON = ""  # of `--json` without a value


@click.command(cls=Verb)
@model_argument
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), required=False)
@click.option("--data", metavar="TEXT", help="Send TEXT, as text/plain.")
@click.option(
    "--json",
    "documents",
    is_flag=False,
    flag_value=_AS_JSON,
    multiple=True,
    metavar="[JSON]",
    help="Send JSON, as application/json. Last and without a value: print the answer within a JSON document.",
)
@click.option(
    "--content-type",
    metavar="TYPE",
    help="Content type of the input [default: of FILE, by its name for JSON and text, else none].",
)
@click.pass_obj
def command(
    socket: Path | None,
    /,
    model: str,
    file: Path | None,
    data: str | None,
    documents: tuple[str, ...],
    content_type: str | None,
) -> None:
    """Send an input to MODEL and print the answer on stdout, unchanged and as it comes.

    The input is FILE (`-` is stdin), or --data TEXT, or --json JSON. A binary answer is not written to
    a terminal: add `> FILE`. With `--json` as the last word, prints a document for programs: status,
    content type, seconds, and the answer (text, JSON, or `base64`).
    """
    as_json = _AS_JSON in documents
    body, own_type = _input(file, data, [each for each in documents if each != _AS_JSON])
    content_type = own_type if content_type is None else content_type
    headers = {"Content-Type": content_type} if content_type else {}
    started = time.monotonic()
    with DaemonClient(socket).exchange("POST", f"/predictions/{model_path(model)}", body, headers) as response:
        status, kind, pieces = response.status, response.getheader("Content-Type") or "", pieces_of(response)
        if status >= 400:
            _refuse(model, status, b"".join(pieces))
        if as_json:
            answer_body = b"".join(pieces)
            told = {"model": model, "status": status, "contentType": kind, "seconds": time.monotonic() - started}
            echo_json(told | _readable(kind, answer_body))
            return
        _print(kind, pieces)


def _refuse(model: str, status: int, body: bytes) -> NoReturn:
    """Raise for an answer of 400 or more; where the handler or its worker failed, the hint names their log."""
    try:
        refuse(status, body, "the model answered")
    except CliError as error:
        if error.kind == _FAILED:
            error.hint = f"`tsctl logs {model}` shows what its workers printed"
        raise


def is_text(content_type: str, beginning: bytes) -> bool:
    """Return whether an answer can be shown on a terminal: by its type; without one, by its first bytes."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind:
        return kind.startswith("text/") or kind in _TEXTUAL or kind.endswith(("+json", "+xml"))
    if beginning.translate(None, _CONTROL) != beginning:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(beginning)  # the last character may go on in the next piece
    except UnicodeDecodeError:
        return False
    return True


def _input(file: Path | None, data: str | None, documents: list[str]) -> tuple[bytes, str]:
    """Return the body and its content type.

    Raises:
        click.UsageError: there is no input or several, or the JSON is none.
        CliError: the file cannot be read.
    """
    given = [name for name, value in (("FILE", file), ("--data", data)) if value is not None]
    given += ["--json"] * len(documents)
    if len(given) != 1:
        problem = f"{' and '.join(given)} exclude each other" if given else "no input"
        raise click.UsageError(f"{problem}; give one of FILE, `-` for stdin, --data TEXT, or --json JSON")
    if data is not None:
        return data.encode("utf-8", "surrogateescape"), "text/plain"
    if documents:
        try:
            json.loads(documents[0])
        except ValueError as error:
            raise click.UsageError(
                f"--json is not JSON: {error}; a text in JSON has double quotes."
                " To print the answer as JSON, write --json as the last word"
            ) from None
        return documents[0].encode("utf-8", "surrogateescape"), "application/json"
    assert file is not None
    return content_of(file), content_type_of(file)


def _readable(kind: str, body: bytes) -> dict[str, Any]:
    """Return an answer as a member of a JSON document: parsed JSON, text, or base64 of other bytes."""
    if is_text(kind, body):
        text = body.decode("utf-8", "replace")
        try:
            return {"answer": json.loads(text)}
        except ValueError:
            return {"answer": text}
    return {"base64": base64.b64encode(body).decode()}


def _print(kind: str, pieces: Iterator[bytes]) -> None:
    """Write an answer to stdout, piece by piece; to a terminal only if the answer is text."""
    first = next(pieces, b"")
    if sys.stdout.isatty() and not is_text(kind, first):
        size = len(first) + sum(map(len, pieces))
        named = f"of type {kind}" if kind else "without a content type"
        echo(
            f"The answer is binary, {size_text(size)} {named}, and is not written to a terminal; add `> FILE`", err=True
        )
        return
    write(chain((first,), pieces))
