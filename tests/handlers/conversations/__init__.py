"""A handler's file, the requests that it gets, and what becomes of them: text files that are compared whole.

`## the claim` begins one, with the lines of the archive's `mine.py`. Then what happens:

    + handler mine.py:other          the handler's name, where it is not `mine.py`; another is loaded beside it
    + file net.py: x = 1\\n           a further file; `+ manifest {"modelFile": "net.py"}`: the manifest's entry `model`
    + net Alias = Net                a file net.py with a model, and what follows it
    + save model.pt {"weight": torch.ones(1)}  what torch saves, as an exported program or as TorchScript if it is that
    + with {"isolate": true}         fields of `wire.Load`; `+ environment NAME=value`
    + images of 100, + sounds of any the most pixels that Pillow reads, or samples
    + load, + load other             load it, or another function or class, where no request follows
    > "a", png(3), form(text="a")    a batch: Python, with the names of `REQUESTS`; a text or bytes is a body
    # of what follows               a sentence for who reads

The rest is written by `python -m tests.lab transcripts`:

    = takes text: str (text) → str   what a typed or built-in handler declares; `= note: …`: what its author is told;
                                     `= handle is ours`: the class has none of its own
    . printed                        on the standard output
    : printed                        on the standard error, but for the tracebacks of `!`
    ~ 0 a                            a piece of the answer to the first row; without any: the batch goes on
    < 200 a (text/plain)             an answer: its status, body and headers; of one that failed, TorchServe's word
    = measured gauge Heat C 21.5 {}  what the daemon is told, but for the times of the handler and of its stages
    = alone: 1 failed                the batch was run again in parts; `= too many: 8`: so many did not fit together;
                                     `= in the log: 0 tracebacks`, where they are not as many as those that are told
    ! ValueError: no                 why it did not load, or the last line of a traceback, with the rows that it failed
"""

import base64
import contextlib
import io
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
import PIL.Image
import torch

from tests.handlers.device import GPU_ID
from tests.handlers.images import encoded
from tsctl import Audio
from tsctl.handlers import wire
from tsctl.handlers.requests.audio import decode_audio, to_wav
from tsctl.handlers.requests.rows import to_npy
from tsctl.handlers.runtime import compat
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.typed.arrays import read_npy
from tsctl.handlers.worker import load_failure

JSON, NPY = "application/json", "application/x-npy"
_NET = """import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(2.0))
    def forward(self, x):
        return x * self.weight + (100.0 if self.training else 0.0)
"""
_TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\):\n(?: .*\n)+\S.*\n"
    r"(?:\n(?:The above exception was the direct cause|During handling of the above exception).*\n\n)?",
    re.MULTILINE,
)
_TORCH_LOGS = re.compile(r"[IWE][0-9]{4} [0-9:.]+ [0-9]+ \S*torch/")
# What libraries say of a file, and of a body, each release in its own words.
_OF_A_FILE = re.compile(r"(weights alone need a model file|is not a torch.export file): .*")
_THEIRS = re.compile(
    r"(?:(not an array of numbers:|not an image:|the shape \[\d*\]:|not base64:|not JSON:|not an array:) .*"
    r"|(depth exceeded).*)(?= \(Request)"
)


def play(lines: list[str], model_dir: Path) -> list[str]:
    """Let it happen again, and return the lines as they would have to be."""
    made: list[str] = []
    with _Conversation(model_dir) as talk:
        for line in lines:
            match line[:2]:
                case "+ ":
                    made += [line, *talk.happen(line[2:])]
                case "> ":
                    made += [line, *talk.ask(line[2:])]
                case "= " | ". " | ": " | "~ " | "~" | "< " | "! ":
                    """Made anew."""
                case _:
                    made.append(line)
                    talk.source.append(line)
    return made


def png(width: int, height: int = 2, mode: str = "L", colour: Any = 255) -> bytes:
    return encoded(PIL.Image.new(mode, (width, height), colour))


def wav(samples: int = 4, channels: int = 1) -> bytes:
    return to_wav(Audio(np.full((channels, samples), 0.5, np.float32), 8000))


def b64(content: bytes) -> str:
    return base64.encodebytes(content).decode()  # with line ends, as some tools write it


def body(value: Any, kind: str = JSON) -> wire.Row:
    """Return a request with a body: bytes as they are, anything else in JSON."""
    return form(("body", kind, value if isinstance(value, bytes) else json.dumps(value).encode()))


def in_types(content: bytes) -> list[wire.Row]:
    """Return requests with this body, each of another content type."""
    return [body(content, kind) for kind in ("", JSON, "text/plain; charset=utf-8", "application/x-any")]


def form(*parts: tuple[Any, ...], **named: str | bytes) -> wire.Row:
    """Return a request with parts: a name, a content type if any, and a value."""
    given = [(each[0], "" if len(each) == 2 else each[1], each[-1]) for each in (*parts, *named.items())]
    return wire.Row("", [], [(name, kind, value.encode() if isinstance(value, str) else value)
                             for name, kind, value in given])  # fmt: skip


def ask(request: Any, **headers: str) -> wire.Row:
    """Return the request with these headers."""
    row = _row(request)
    return wire.Row(
        row.id,
        [(name.replace("_", "-") if name[0].isupper() else name, value) for name, value in headers.items()],
        row.params,
    )


def instances(*values: Any, **query: str) -> wire.Row:
    """Return a request of KServe's first protocol, and what its query has beside that."""
    return form((wire.INSTANCES, JSON, json.dumps({"instances": values})), *query.items())


def _row(request: Any) -> wire.Row:
    return request if isinstance(request, wire.Row) else form(("body", request))


REQUESTS = {
    "ask": ask, "b64": b64, "body": body, "form": form, "in_types": in_types, "instances": instances, "npy": to_npy,
    "np": np, "png": png, "wav": wav, "INSTANCES": wire.INSTANCES, "JSON": JSON, "NPY": NPY,
}  # fmt: skip


class _Conversation(contextlib.ExitStack):
    """An archive's files, and the handlers that were loaded from them."""

    def __init__(self, model_dir: Path) -> None:
        super().__init__()
        compat.install()  # as a worker does: tsctl need not be installed for the names of TorchServe
        self.source: list[str] = []
        self._folder, self._handler = model_dir, "mine.py"
        self._runtime: Runtime | None = None
        self._model: dict[str, Any] = {}
        self._fields: dict[str, Any] = {}

    def happen(self, text: str) -> Iterable[str]:
        verb, _, rest = text.partition(" ")
        match verb:
            case "handler":
                self._handler, self._runtime = rest, None
            case "file":
                name, _, content = rest.partition(": ")
                (self._folder / name).parent.mkdir(exist_ok=True)
                (self._folder / name).write_text(content.encode().decode("unicode_escape"))
            case "net":
                (self._folder / "net.py").write_text(_NET + rest.encode().decode("unicode_escape"))
            case "save":
                name, _, expression = rest.partition(" ")
                _save(eval(expression, {"torch": torch, "Times": Times}), self._folder / name)
            case "manifest":
                self._model |= json.loads(rest)
            case "with":
                self._fields |= json.loads(rest)
            case "environment":
                name, _, value = rest.partition("=")
                self.enter_context(patch.dict(os.environ, {name: value}))
            case "images" | "sounds":
                owner: Any = PIL.Image if verb == "images" else Audio
                name = "MAX_IMAGE_PIXELS" if verb == "images" else "MAX_SAMPLES"
                self.callback(setattr, owner, name, getattr(owner, name))
                most = rest.removeprefix("of ")
                setattr(owner, name, None if most == "any" else int(most))
            case "load":
                self._handler = f"mine.py:{rest}" if rest else self._handler
                return self._load()
            case _:
                raise ValueError(text)
        return ()

    def ask(self, text: str) -> Iterable[str]:
        told = [] if self._runtime else [*self._load()]
        requests = eval(f"({text},)", dict(REQUESTS))
        rows = [wire.Row(f"r{number}", row.headers, row.params) for number, row in enumerate(map(_row, requests))]
        if self._runtime is None:
            return told
        runtime, printed = self._runtime, _Printed(told)
        logged = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(logged):
            answers = runtime.run(rows, lambda pieces: told.extend(_pieces(pieces)))
        printed.end()
        told += self._on_stderr(logged)
        told += [f"< {_told(each)}" for each in answers]
        if runtime.isolation is not None:
            assert runtime.isolation.seconds > 0
            told.append(f"= alone: {runtime.isolation.failed} failed")
        if runtime.too_large:
            told.append(f"= too many: {runtime.too_large}")
        told += [f"! {each.traceback.splitlines()[-1]} {each.rows}" for each in runtime.failures]
        told += [
            f"= measured {each.kind} {each.name} {each.unit} {each.value:g} {dict(each.labels)}"
            for each in runtime.measured()
            if each.name not in ("HandlerTime", wire.STAGE_TIME)
        ]
        tracebacks = logged.getvalue().count("Traceback (most recent call last)")
        told += [f"= in the log: {tracebacks} tracebacks"] * (tracebacks != len(runtime.failures))
        return told

    def _load(self) -> Iterable[str]:
        (self._folder / "mine.py").write_text("\n".join([*self.source, ""]))
        load = wire.Load("net", "1.0", str(self._folder), self._handler, {"model": self._model}, 8, 1, GPU_ID)
        told: list[str] = []
        printed, logged = _Printed(told), io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(logged):
                runtime = self._runtime = Runtime.load(msgspec.structs.replace(load, **self._fields))
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is told
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # without this frame
            told += [f"! {line}" for line in self._of_ours(load_failure(error, str(self._folder)).traceback)]
        else:
            self.callback(runtime.close)
            told += [f"= takes {_declared(runtime.declared)}"] if runtime.declared else []
            told += ["= handle is ours"] * (not runtime.own_handle)
            told += [f"= note: {note}" for note in runtime.notes]
        printed.end()
        return [*told, *self._on_stderr(logged)]

    def _on_stderr(self, logged: io.StringIO) -> Iterable[str]:
        """Yield what was printed on the standard error, but for tracebacks, and what torch logs, by its time."""
        text = _TRACEBACK.sub("", logged.getvalue()).replace(str(self._folder), "FOLDER")
        lines = (line.rstrip() for line in text.splitlines() if not _TORCH_LOGS.match(line))
        yield from (f": {line}" for line in lines if line)

    def _of_ours(self, traceback: str) -> Iterable[str]:
        """Yield a traceback's lines, but for libraries' frames and Python's marks, which are others in each release."""
        shown = True
        traceback = _OF_A_FILE.sub(
            r"\1: …", traceback.rpartition("the direct cause of the following exception:\n\n")[2]
        )
        for line in traceback.splitlines():
            if line.startswith("  File "):
                shown = (self._folder / line.split('"')[1]).exists()
            elif not line.startswith("    "):
                shown = True
            if shown and line.strip(" ^~"):
                yield line.rstrip()


class Times(torch.nn.Module):
    """A model that can be exported; in training it answers otherwise."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(factor))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight + (100.0 if self.training else 0.0)


def _save(model: Any, path: Path) -> None:
    if isinstance(model, torch.jit.ScriptModule):
        model.save(str(path))
    elif isinstance(model, torch.export.ExportedProgram):
        torch.export.save(model, path)
    elif isinstance(model, bytes):
        path.write_bytes(model)
    else:
        torch.save(model, path)


class _Printed(io.StringIO):
    """Tells each line that is printed."""

    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self._all = told

    def write(self, text: str) -> int:
        *lines, rest = (self.getvalue() + text).split("\n")
        lines = [re.sub("(?<=passed on as bytes: ).*", "…", line) for line in lines]
        self._all += [f". {re.sub(r'hostname:[^,]+,[0-9]+', 'hostname:HERE,NOW', line)}" for line in lines]
        self.seek(0)
        self.truncate()
        return super().write(rest)

    def end(self) -> None:
        self._all += [f". {self.getvalue()}"] * bool(self.getvalue())


def _declared(declared: wire.Declared) -> str:
    inputs = ", ".join(f"{each.name}: {each.annotation} ({each.kind})" for each in declared.inputs)
    words = {
        "in batches": declared.batches, f"of {declared.batch_size}": declared.batch_size, "streams": declared.streams,
        "waits": declared.waits, "built in": declared.built_in,
    }  # fmt: skip
    told = ", ".join([inputs, *(word for word, holds in words.items() if holds)])
    return f"{told} → {declared.output}" if declared.output else told


def _pieces(pieces: Sequence[tuple[int, wire.Answer]]) -> list[str]:
    return [f"~ {place} {_told(piece)}" for place, piece in pieces] or ["~"]


def _told(answer: wire.Answer) -> str:
    """Return all of an answer: an image, a sound or an array by what it holds."""
    kind = dict(answer.headers).get("Content-Type")
    if kind == NPY:
        array = read_npy(answer.body)
        text = f"{array.dtype} {array.tolist()}"
    elif kind == "image/png":
        with PIL.Image.open(io.BytesIO(answer.body)) as image:
            text = f"{image.width}x{image.height}"
    elif kind == "audio/wav":
        sound = decode_audio(answer.body)
        text = f"{np.round(sound.channels, 3).tolist()} at {sound.rate}"
    elif answer.body[:2] == b"PK":
        text = f"saved {torch.load(io.BytesIO(answer.body)).tolist()}"
    else:
        text = _THEIRS.sub(r"\1\2 …", re.sub(r"\n *", " ", answer.body.decode(errors="backslashreplace")))
    status = " ".join(filter(None, [str(answer.status), answer.phrase, answer.error]))
    return f"{status}: {text}" + "".join(f" ({name}: {value})" for name, value in answer.headers)
