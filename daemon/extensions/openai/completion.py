"""One completion: takes the model's texts, and answers its exchange in the words of OpenAI's API."""

import json
from collections.abc import Coroutine
from typing import Any

from tsctl.daemon.api.inference.openapi import describe_api
from tsctl.daemon.api.inference.predict import predict
from tsctl.daemon.api.inference.turns import Reading, Turns
from tsctl.daemon.core.client import LimitedClient
from tsctl.daemon.core.errors import BadRequest, MethodNotAllowed, PredictionFailed, ResourceNotFound
from tsctl.daemon.core.job import Piece, Reply
from tsctl.daemon.extensions.openai.requests import (
    CHAT,
    COMPLETIONS,
    Asked,
    check_members,
    is_long,
    read_request,
    read_steps,
)
from tsctl.daemon.http.bounds.sending import NotRead
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response, check_query, error_body, json_response, reply_response
from tsctl.daemon.http.router import Route
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.routing.steering import steer
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.envelopes.openai_wording import Wording, event_of

MOST_TEXT = 16 * 1024 * 1024  # bytes of the pieces that are joined to one answer
_EVENT = b"data:"
_EVENTS = (("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache"))


class Completion:
    """The receiver of a job's replies, whole or in pieces, for a client that wants the one or the other.

    What a handler has worded itself is passed on: an answer in JSON with `choices`, pieces that are events.

    Args:
        stream: the client wants pieces, as server-sent events.
    """

    def __init__(self, exchange: Exchange, wording: Wording, *, stream: bool) -> None:
        self._exchange = exchange
        self._wording = wording
        self._stream = stream
        self._begun = False  # a piece has come
        self._passes = False  # the pieces are events already
        self._pieces: list[bytes] = []
        self._size = 0

    def deliver(self, reply: Reply) -> None:
        """Answer with a whole text, or the last piece of one."""
        exchange = self._exchange
        if exchange.done:
            return  # a piece was an error
        if reply.error or reply.status >= 300:
            self._fail(reply)
        elif self._passes:
            exchange.send(reply.body)
            exchange.finish()
        elif not exchange.started and not self._pieces and is_worded(reply):
            exchange.respond(reply_response(reply, exchange.request.target))
        elif self._stream:
            self._start()
            exchange.send(self._wording.end(reply.body if self._begun else text_of(reply)))
            exchange.finish()
        else:
            text = b"".join([*self._pieces, reply.body]) if self._begun else text_of(reply)
            exchange.respond(json_response(self._wording.whole(text)))

    def stream(self, piece: Reply) -> None:
        """Pass on a piece, or keep it for the whole answer."""
        exchange, flow = self._exchange, None
        if isinstance(piece, Piece):
            if piece.unread:
                exchange.fail(NotRead(piece.unread))
                return
            flow = piece.flow
        if exchange.done:
            if flow is not None:
                flow.refuse()
            return
        if piece.status >= 300:  # the handler reports an error
            if flow is not None:
                flow.refuse()
            self._fail(piece)
            return
        first, self._begun = not self._begun, True
        if self._stream:
            self._start()
            self._passes = self._passes or (first and piece.body.startswith(_EVENT))
            exchange.send(piece.body if self._passes else self._wording.chunk(piece.body), flow)
            return
        self._pieces.append(piece.body)
        self._size += len(piece.body)
        if self._size > MOST_TEXT:
            exchange.fail(PredictionFailed(f"The answer has more than {MOST_TEXT} bytes; ask for it with `stream`."))
            if flow is not None:
                flow.refuse()
        elif flow is not None:
            flow.wanted = True
            flow.drained()

    def _start(self) -> None:
        if not self._exchange.started:
            self._exchange.start(Response(200, headers=_EVENTS))

    def _fail(self, reply: Reply) -> None:
        exchange = self._exchange
        if exchange.started:
            kind, text = reply.error or PredictionFailed.kind, reply.body.decode("utf-8", "replace")
            exchange.send(event_of(error_body(reply.status, kind, text, exchange.request.target)))
            exchange.finish()
        else:
            exchange.respond(reply_response(reply, exchange.request.target))


def is_worded(reply: Reply) -> bool:
    """Return whether a handler's answer is a document of the API."""
    document = _json_of(reply)
    return isinstance(document, dict) and "choices" in document


def text_of(reply: Reply) -> bytes:
    """Return the text of a whole answer: the body, or the text that is its JSON."""
    document = _json_of(reply)
    return document.encode("utf-8", "surrogatepass") if isinstance(document, str) else reply.body


def _json_of(reply: Reply) -> object:
    """Return the document of an answer in JSON; None for any other."""
    kinds = [value for name, value in reply.headers if name.lower() == "content-type"]
    if not kinds or kinds[0].partition(";")[0].strip().lower() != "application/json":
        return None
    try:
        found: object = json.loads(reply.body)
    except (ValueError, RecursionError):
        return None
    return found


Work = Coroutine[Any, Any, None] | None


def openai_routes(registry: Registry, turns: Turns | None = None) -> dict[str, Route]:
    """The routes of OpenAI's API at the inference address.

    POST /v1/completions         the text after a prompt
    POST /v1/chat/completions    the next message of a chat
    GET  /v1/models              the registered models

    Args:
        turns: reads large requests; None for a reader of these routes alone.
    """
    reader = turns or Turns()

    def v1(exchange: Exchange, path: list[str]) -> Work:
        request = exchange.request
        match path:
            case ["models"]:
                if request.method != "GET":
                    raise MethodNotAllowed
                exchange.respond(json_response(models_document(registry, request.client)))
            case ["completions"] | ["chat", "completions"]:
                if request.method == "OPTIONS":
                    exchange.respond(json_response(describe_api()))
                elif request.method == "POST":
                    check_query(request, (), "this route")
                    chat = path[0] == "chat"
                    if is_long(request.body):
                        return complete_long(exchange, chat=chat)
                    complete(exchange, read_request(request.body, chat=chat), chat=chat)
                else:
                    raise MethodNotAllowed
            case _:
                raise ResourceNotFound
        return None

    async def complete_long(exchange: Exchange, *, chat: bool) -> None:
        reading = Reading(read_steps(exchange.request.body, chat=chat))
        await reader.read(reading, exchange, 0.0, reading.finish)
        if reading.finished is not None:
            complete(exchange, reading.finished, chat=chat)

    def complete(exchange: Exchange, asked: Asked, *, chat: bool) -> None:
        request = exchange.request
        model = steer(registry, asked.model, asked.version, request)
        if model.declared is not None:
            _check_members(model, asked)
        wording = Wording(request.id, model.name, chat=chat)
        predict(
            exchange, model, asked.params, [("url_path", CHAT if chat else COMPLETIONS)],
            unnamed=asked.version is None, receiver=Completion(exchange, wording, stream=asked.stream),
        )  # fmt: skip

    return {"v1": v1}


def _check_members(model: ModelVersion, asked: Asked) -> None:
    """Check the members of a request to a handler with type hints; count a refusal."""
    assert model.declared is not None
    try:
        check_members(asked.params, [each.name for each in model.declared.inputs])
    except BadRequest as error:
        model.metrics.refused(error)
        raise


def models_document(registry: Registry, client: LimitedClient | None = None) -> dict[str, Any]:
    """Return the registered models as OpenAI's API lists them, and their names as KServe's first protocol does.

    Args:
        client: sees only the models that it may use; None to show all.
    """
    names = [model.name for model in registry.defaults() if client is None or client.may_use(model.name)]
    listed = [{"id": name, "object": "model", "created": 0, "owned_by": "tsctl"} for name in names]
    return {"object": "list", "data": listed, "models": names}
