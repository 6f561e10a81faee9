"""One completion: takes the model's texts, and answers its exchange in the words of OpenAI's API."""

from collections.abc import Coroutine, Mapping
from typing import Any

from tsctl.daemon.api.inference.openapi import describe_api
from tsctl.daemon.api.inference.predict import predict
from tsctl.daemon.api.inference.text_answers import TextAnswer, document_of, text_of
from tsctl.daemon.api.inference.turns import Reading, Turns
from tsctl.daemon.core.client import LimitedClient
from tsctl.daemon.core.errors import BadRequest, MethodNotAllowed, PredictionFailed, ResourceNotFound
from tsctl.daemon.core.job import Reply
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.openai.requests import (
    CHAT,
    COMPLETIONS,
    Asked,
    check_members,
    is_long,
    read_request,
    read_steps,
)
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import check_query, error_body, json_response, reply_response
from tsctl.daemon.http.router import Audience, Route
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.routing.steering import steer
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.envelopes.openai_wording import Wording, event_of

_EVENT = b"data:"


class Completion(TextAnswer):
    """The answer in the words of the API, but for what a handler has worded itself, which is passed on.

    Such are an answer in JSON with `choices`, and pieces that are events.
    """

    how_to_stream = "ask for it with `stream`"

    def __init__(self, exchange: Exchange, wording: Wording, *, stream: bool) -> None:
        super().__init__(exchange, stream=stream)
        self._wording = wording
        self._passes = False  # the pieces are events already

    def _end(self, reply: Reply) -> None:
        exchange = self._exchange
        if self._passes:
            exchange.send(reply.body)
            exchange.finish()
        elif not exchange.started and not self._pieces and is_worded(reply):
            exchange.respond(reply_response(reply, exchange.request.target))
        elif self._stream:
            self._start()
            exchange.send(self._wording.last_events(reply.body if self._begun else text_of(reply)))
            exchange.finish()
        else:
            text = b"".join([*self._pieces, reply.body]) if self._begun else text_of(reply)
            exchange.respond(json_response(self._wording.whole(text)))

    def _piece(self, piece: Reply) -> bytes:
        if not self._stream:
            return piece.body
        self._passes = self._passes or (not self._begun and piece.body.startswith(_EVENT))
        return piece.body if self._passes else self._wording.chunk(piece.body)

    def _error(self, reply: Reply) -> bytes:
        kind, text = reply.error or PredictionFailed.kind, reply.body.decode("utf-8", "replace")
        return event_of(error_body(reply.status, kind, text, self._exchange.request.target))


def is_worded(reply: Reply) -> bool:
    """Return whether a handler's answer is a document of the API."""
    document = document_of(reply)
    return isinstance(document, dict) and "choices" in document


Work = Coroutine[Any, Any, None] | None


class OpenAIService(Service):
    def __init__(self, kernel: Kernel) -> None:
        self._routes = openai_routes(kernel.registry, kernel.turns)

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        return self._routes if audience is Audience.CLIENTS else {}


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
        if await reader.read_whole(reading, exchange, 0.0):
            complete(exchange, reading.result, chat=chat)

    def complete(exchange: Exchange, asked: Asked, *, chat: bool) -> None:
        request = exchange.request
        request.check_model(asked.model)
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
