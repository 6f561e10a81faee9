"""A command of the management API, of the core or of an extension: its parameters, its progress, its answer."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from tsctl.daemon.api.inference.raw_forms import is_urlencoded
from tsctl.daemon.api.inference.urlencoded import first_bytes
from tsctl.daemon.api.openapi import (
    UNKNOWN_CALLER,
    Operation,
    Schema,
    answer,
    operation,
    path_parameters,
    query_parameters,
)
from tsctl.daemon.core.errors import BadRequest, DaemonError, MethodNotAllowed, ResourceNotFound
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Request, Response, error_body, json_response
from tsctl.daemon.http.router import Route
from tsctl.daemon.model_settings import ModelSetting, ValueKind
from tsctl.daemon.models.persistence.snapshot_file import one_change
from tsctl.daemon.models.registrar import Progress, Registrar, no_progress
from tsctl.daemon.models.registry import Registry
from tsctl.handlers.texts.near_names import did_you_mean, plain

_SHOWN = 100  # characters of a name in a message
_FIELD = re.compile(rb"[\w.-]+=[\w.:/-]*", re.ASCII)  # the first one of a form


class Parameters:
    """Named values as text or JSON; each getter raises BadRequest with the name and the value.

    Raises:
        BadRequest: a parameter would be without effect, as in TorchServe, or the body is no JSON object.
    """

    def __init__(self, request: Request) -> None:
        pairs = request.query_pairs
        self._values: dict[str, Any] = dict(pairs)
        for name, count in Counter(name for name, _ in pairs).items():
            if count > 1:
                raise BadRequest(f"The parameter {name[:_SHOWN]} is given {count} times; give it once.")
        if not request.body:
            return
        kind = request.content_type
        if kind.partition(";")[0].strip().lower() != "application/json":
            field = _FIELD.match(first_bytes(request.body, _SHOWN))
            came = f"as `{kind[:_SHOWN]}`" if kind else "without a content type,"
            if is_urlencoded(kind) or kind.lower().startswith("multipart/form-data"):
                came = "as a form, which is how curl's -d and -F send it,"
            raise BadRequest(
                f"The body came {came} and is not read here: write the parameters into the URL,"
                f" `?{field.group().decode() if field else 'NAME=VALUE'}`, or send JSON with"
                " -H 'Content-Type: application/json'."
            )
        document = request.json()
        if not isinstance(document, dict):
            raise BadRequest("Invalid body; expected a JSON object.")
        if document and (name := next(iter(self._values), "")):
            raise BadRequest(f"The parameter {name[:_SHOWN]} is in the URL, beside a body: write it into the body.")
        self._values |= document

    @property
    def names(self) -> list[str]:
        return list(self._values)

    def value(self, name: str) -> Any:
        """Return a value as it is given: a text, or anything of JSON; None if absent."""
        return self._values.get(name)

    def text(self, name: str, *, empty: bool = False) -> str | None:
        """Return a string; None if absent, or if empty and not `empty`."""
        value = self._values.get(name)
        if value is not None and not isinstance(value, str):
            raise BadRequest(f"{name} is {value!r}; expected a string.")
        return value if value or empty else None

    def read(self, name: str, kind: ValueKind, *, absent: bool = False) -> Any:
        """Return the parsed value of this kind, None if absent.

        Args:
            absent: treat -1 as absent, as TorchServe's clients send for a number that is not given.
        """
        value = self._values.get(name)
        if value is None or value == "":
            return None
        try:
            if absent and kind.numeric and not isinstance(value, bool) and float(value) == -1:
                return None
        except (TypeError, ValueError, OverflowError):
            pass
        try:
            return kind.parse(value) if isinstance(value, str) else kind.read(value)
        except ValueError as error:
            raise BadRequest(f"{name} is {value!r}; expected {error}.") from None

    def check_names(self, known: Collection[str], settings: Sequence[ModelSetting]) -> None:
        """Check that every parameter is known, so that none is without effect.

        Args:
            settings: which may be meant, by their other names.

        Raises:
            BadRequest: one is unknown; the message names the one that is probably meant.
        """
        for name in self._values:
            if name not in known:
                raise BadRequest(f"Unknown parameter {name[:_SHOWN]}{_near(name, known, settings)}")

    def flag(self, name: str, default: bool) -> bool:
        value = self._values.get(name)
        if value is None:
            return default
        return str(value).lower() == "true"


def _near(name: str, known: Collection[str], settings: Sequence[ModelSetting]) -> str:
    """Return the end of the sentence on an unknown parameter: what to write instead, if that is clear."""
    asked = plain(name)
    if asked == "modelurl" and "url" in known:  # as a model's description has it
        return "; did you mean `url`?"
    for row in settings:  # by its name in model-config.yaml, of the option, or inside the program
        if asked in map(plain, filter(None, (row.yaml, row.flag, row.name))):
            return f"; did you mean `{row.rest}`?" if row.rest else f". {row.why}".rstrip()
    return did_you_mean(name, known) or "."


NDJSON = "application/x-ndjson"

Command = Callable[[Progress], Awaitable[tuple[int, Any]]]  # runs the command; returns status and document
LATER = (202, {"status": "Processing worker updates..."})  # of one whose client does not wait for the workers


async def run(exchange: Exchange, command: Command) -> None:
    """Long commands with progress.

    A client that accepts `application/x-ndjson` receives the progress as JSON objects, one per line; the
    last line holds the status and the document that other clients receive as the answer. A command
    continues when its client disconnects.
    """
    if NDJSON not in exchange.request.header("accept"):
        status, document = await command(no_progress)
        exchange.respond(json_response(document, status))
        return

    def tell(event: dict[str, Any]) -> None:
        exchange.send(json.dumps(event).encode() + b"\n")

    def progress(stage: str, done: int, total: int) -> None:
        tell({"stage": stage, "done": done, "total": total})

    exchange.start(Response(200, headers=(("Content-Type", NDJSON),)))
    try:
        status, document = await command(progress)
    except DaemonError as error:
        status, document = error.status, error_body(error.status, error.kind, str(error))
    tell({"stage": "done", "status": status, "document": document})
    exchange.finish()


CHANGE_HEADER = "x-tsctl-change"  # a token that the commands of one change have in common, see snapshot_file.py
READING = frozenset({"GET", "HEAD", "OPTIONS"})

UNDERSTOOD = {"400": "The request is malformed, or a parameter is invalid."}
FOUND = {**UNDERSTOOD, "404": "The model, version, archive or route does not exist."}
FAILED = {"500": "The command failed; the message has the reason."}
NOT_NOW = {"503": "The daemon is being upgraded or stopped, or no worker can answer."}
CLASHES = {"409": "The version is already registered, is being replaced, or is in a state that forbids the command."}
CHANGED = FOUND | FAILED | NOT_NOW | CLASHES | UNKNOWN_CALLER


async def awaited(registry: Registry, name: str, version: str | None = None) -> None:
    """Wait until a model that is listed, or that the last run had, is registered, or could not be.

    Commands for it would else fail between the moment when the daemon listens, and that when its archive is unpacked.
    """
    while registry.expects(name) and not (registry.holds(name, version) if version else name in registry):
        settled = asyncio.get_running_loop().create_future()
        look = partial(_settle, settled)
        registry.waiters.append(look)
        try:
            await settled
        finally:
            registry.waiters.remove(look)


def _settle(settled: asyncio.Future[None]) -> None:
    if not settled.done():
        settled.set_result(None)


@contextmanager
def changing(registrar: Registrar, request: Request) -> Iterator[None]:
    """Answer a request inside the block; if it may change something, as a part of the change that it names.

    Raises:
        Upgrading: the request may change something, and the daemon is being upgraded.
    """
    if request.method in READING:
        yield
    else:
        with registrar.gate.change(), one_change(request.header(CHANGE_HEADER)):
            yield


class ModelRoute:
    """The route of `/models/MODEL/WORD`, which `answer` answers as `changing`; other paths are another's.

    Args:
        commands: so is one more segment.
    """

    def __init__(
        self, registrar: Registrar, word: str, answer: Callable[[Exchange, list[str]], Awaitable[None]],
        *, commands: bool = False,
    ) -> None:  # fmt: skip
        self._registrar, self._word, self._answer, self._longest = registrar, word, answer, 2 + commands

    def __call__(self, exchange: Exchange, path: list[str]) -> Coroutine[Any, Any, None]:
        if not 2 <= len(path) <= self._longest or path[1] != self._word or exchange.request.method == "OPTIONS":
            raise ResourceNotFound
        return self._answered(exchange, path)

    async def _answered(self, exchange: Exchange, path: list[str]) -> None:
        with changing(self._registrar, exchange.request):
            await self._answer(exchange, path)


def word_routes(
    answers: Mapping[str, Callable[..., Coroutine[Any, Any, None] | None]], method: str = "GET",
    named: Collection[int] = (0,),
) -> dict[str, Route]:  # fmt: skip
    """Return the route of `/tsctl/WORD`, and of the models below it; other paths are another's.

    Args:
        answers: word → what answers it, called with the exchange and the names in the path.
        named: how many names may follow.
    """

    def route(exchange: Exchange, path: list[str]) -> Coroutine[Any, Any, None] | None:
        if not path or path[0] not in answers or len(path) - 1 not in named:
            raise ResourceNotFound
        if exchange.request.method != method:
            raise MethodNotAllowed
        return answers[path[0]](exchange, *path[1:])

    return {"tsctl": route}


def finished(
    name: str, path: str, schema: Schema, query: dict[str, Schema] | None = None, required: str = ""
) -> Operation:
    """Return the description of a command that is done once it is answered.

    Args:
        schema: of the answer.
        query: its parameters.
        required: the one that must be given.
    """
    parameters = path_parameters(path) + query_parameters(query or {}, required)
    return operation(name, parameters, {"200": answer("Done.", schema)}, CHANGED)
