"""The routes of OpenAI's API at the inference address.

POST /v1/completions         the text after a prompt
POST /v1/chat/completions    the next message of a chat
GET  /v1/models              the registered models
"""

from typing import Any

from daemon.api.inference.openapi import describe_api
from daemon.api.inference.predict import predict
from daemon.api.openai.completion import Completion
from daemon.api.openai.requests import CHAT, COMPLETIONS, read_request
from daemon.core.errors import MethodNotAllowed, ResourceNotFound
from daemon.http.bounds.known_client import KnownClient
from daemon.http.exchange import Exchange
from daemon.http.messages import json_response
from daemon.http.router import Route
from daemon.models.registry import Registry
from daemon.models.routing.steering import steer
from handlers.envelopes.openai_wording import Wording


def openai_routes(registry: Registry) -> dict[str, Route]:
    """Return the routes: first path segment → function."""

    def v1(exchange: Exchange, path: list[str]) -> None:
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
                    complete(exchange, chat=path[0] == "chat")
                else:
                    raise MethodNotAllowed
            case _:
                raise ResourceNotFound

    def complete(exchange: Exchange, *, chat: bool) -> None:
        request = exchange.request
        asked = read_request(request.body, chat=chat)
        model = steer(registry, asked.model, asked.version, request)
        wording = Wording(request.id, model.name, chat=chat)
        predict(
            exchange, model, asked.params, [("url_path", CHAT if chat else COMPLETIONS)],
            unnamed=asked.version is None, receiver=Completion(exchange, wording, stream=asked.stream),
        )  # fmt: skip

    return {"v1": v1}


def models_document(registry: Registry, client: KnownClient | None = None) -> dict[str, Any]:
    """Return the registered models as OpenAI's API lists them, and their names as KServe's first protocol does.

    Args:
        client: sees only the models that it may use; None to show all.
    """
    names = [model.name for model in registry.defaults() if client is None or client.may_use(model.name)]
    listed = [{"id": name, "object": "model", "created": 0, "owned_by": "tsctl"} for name in names]
    return {"object": "list", "data": listed, "models": names}
