"""Commands, and all that they ask and say, in text files that are compared whole.

`## the claim` begins one. In it, `+ FILE TEXT` is a file of the folder that tsctl runs in, and what the daemon answers:

    < GET /models/net 404 {"message": "…"}       a status, if it is not 200, and a JSON document
    < GET /models/net [{"@": "described", "a": 1}]   in which `@` brings a file of this folder, here with changes
    < POST /tsctl/upgrade nd [{…}, {…}]          events, a line each
    < GET /metrics text "…"                      a body of the type text/plain; `raw "…"`: the whole answer
    & tsctl.generator.GENERATOR [{"stage": "…"}] what the process says that a command starts instead of this program
    @ TSCTL_TOKEN secret                         a variable of the environment
    ? FILE EXPRESSION                            shows, with `|`, the lines of a file that begin with the expression
    $ tsctl describe net                         the command; the rest is written
    > GET /models/net (TYPE) "BODY"              what it asked of the daemon
    | …                                          what it wrote to stdout, and with `!` to stderr; `= 2`: its exit code
    * net.mar: FILES: MODEL                      an archive that it has made, and what its manifest says
    % {"seconds": 10.0} "BODY"                   what the process was told
"""

import json
import os
import re
import shlex
import sys
import tarfile
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import unquote_plus

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon, Request
from tsctl.daemon.marfile import MANIFEST

HERE = Path(__file__).parent
# Keeps what it is told in a file, and says what stands in another.
STAND_IN = """
import json, sys
line = sys.stdin.buffer.readline()
body = sys.stdin.buffer.read(json.loads(line).get("body_bytes", -1)).decode("latin-1")
open(sys.argv[1], "w").write(f"{json.dumps(json.loads(line))} {json.dumps(body)}")
print(open(sys.argv[2]).read(), flush=True)
"""


def play(lines: list[str], daemon: FakeDaemon, folder: Path, invoke: Invoke) -> list[str]:
    """Run the commands in a folder, and return the lines as they would have to be."""
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ))
        return _played(lines, daemon, folder, invoke, stack)


def _played(lines: list[str], daemon: FakeDaemon, folder: Path, invoke: Invoke, stack: ExitStack) -> list[str]:
    made, (order, said) = list[str](), (folder.parent / name for name in ("order", "said"))
    for line in lines:
        match line[:1]:
            case "+":
                name, _, text = line[2:].partition(" ")
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text.replace("\\n", "\n"))
            case "<":
                _answer(daemon, line[2:])
            case "@":
                name, _, value = line[2:].partition(" ")
                os.environ[name] = value.replace("FOLDER", str(folder))
            case "?":
                name, _, expression = line[2:].partition(" ")
                written = (folder / name).read_text().splitlines() if (folder / name).exists() else ["is not there"]
                made += [line, *(f"| {each}" for each in written if re.match(expression, each))]
                continue
            case "&":
                program, _, events = line[2:].partition(" ")
                said.write_text("\n".join(json.dumps(_filled(each)) for each in json.loads(events)))
                stack.enter_context(patch(program, (sys.executable, "-c", STAND_IN, str(order), str(said))))
            case "$":
                words, before = shlex.split(line[2:].replace("FOLDER", str(folder)))[1:], len(daemon.requests)
                archives = _archives(folder)
                result = invoke(*words)
                if isinstance(result.exception, Exception):
                    raise result.exception
                told = [line, *(f"> {_shown(request)}" for request in daemon.requests[before:])]
                told += [f"| {each}".rstrip() for each in result.stdout.splitlines()]
                told += [f"! {each}".rstrip() for each in result.stderr.splitlines()]
                told += [each for each in _archives(folder) if each not in archives]
                if order.exists():
                    told.append(f"% {order.read_text()}")
                    order.unlink()
                told += [f"= {result.exit_code}"] * bool(result.exit_code)
                programs = Path(sys.executable).parent
                for shown, hidden in (
                    (folder, "FOLDER"), (folder.parent, "HOME"), (sys.executable, "PYTHON"), (programs, "PROGRAMS"),
                ):  # fmt: skip
                    told = [each.replace(str(shown), hidden) for each in told]
                made += told
                continue
            case _:
                continue
        made.append(line)
    return made


def _archives(folder: Path) -> list[str]:
    """Return a line for each archive below a folder: the files in it, and what its manifest says of the model."""
    found = []
    for file in sorted(file for file in folder.rglob("*.*") if file.suffix in (".mar", ".gz")):
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                names, manifest = sorted(archive.namelist()), json.loads(archive.read(MANIFEST))
            model = json.dumps({"runtime": manifest["runtime"], **manifest["model"]})
            found.append(f"* {file.relative_to(folder)}: {' '.join(names)}: {model}")
        elif tarfile.is_tarfile(file):
            found.append(f"* {file.relative_to(folder)}, in tar's format")
    return found


def loaded(name: str) -> dict[str, Any]:
    """Return a document of this folder."""
    document: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text())
    return document


def _answer(daemon: FakeDaemon, text: str) -> None:
    method, path, rest = text.split(" ", 2)
    kind, _, said = rest.partition(" ")
    line = f"{method} {path}"
    match kind:
        case "raw":
            daemon.answer_raw(line, json.loads(said).encode())
        case "text":
            daemon.answer_body(line, json.loads(said).encode(), "text/plain")
        case "nd":
            events = "".join(f"{json.dumps(each)}\n" for each in json.loads(said))
            daemon.answer_body(line, events.encode(), "application/x-ndjson")
        case _ if kind.isdecimal() and said:
            daemon.answer(line, _filled(json.loads(said)), int(kind))
        case _:
            daemon.answer(line, _filled(json.loads(rest)))


def _filled(document: Any) -> Any:
    """Return a document with those that its `@` names."""
    if isinstance(document, list):
        return [_filled(each) for each in document]
    if not isinstance(document, dict):
        return document
    changes = {name: _filled(each) for name, each in document.items()}
    name = changes.pop("@", None)
    return changes if name is None else _merged(loaded(name), changes)


def _merged(document: Any, changes: Any) -> Any:
    if not isinstance(document, dict) or not isinstance(changes, dict):
        return changes
    return document | {name: _merged(document.get(name), each) for name, each in changes.items()}


def _shown(request: Request) -> str:
    kind = request.headers.get("Content-Type")
    body = json.dumps(request.body.decode("latin-1")) if request.body else ""
    return " ".join(filter(None, [request.method, unquote_plus(request.target), kind and f"({kind})", body]))
