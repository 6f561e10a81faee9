"""`GET /`: that the daemon is alive, for programs; the models, with what to ask, for people and those who ask for JSON.

    Accept                   the answer
    -----------------------  -------------------------------------------------------
    none, `*/*`              `{"status": "alive"}`, as KServe's model server has it
    `application/json`       the same, with the models and their links
    `text/html`              a page of them, without any script

The page tells no more than the paths do: who has a key sees its models. Over TCP, to those whose key or token is
missing or wrong the answer is that to programs.
"""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any
from urllib.parse import quote

from tsctl.daemon.api.auth import inference_check
from tsctl.daemon.config.tokens import Tokens
from tsctl.daemon.core.errors import DaemonError, ResourceNotFound
from tsctl.daemon.extension import Service
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import JSON, Request, Response, json_response
from tsctl.daemon.http.router import Audience, Route
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.reporting.trouble import STATES
from tsctl.daemon.models.version import ModelVersion

_HEADERS = (
    ("Content-Type", "text/html; charset=utf-8"),
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
)
_READING = ("GET", "HEAD")
_ALIVE = {"status": "alive"}
_LINKS = {"ping": "/ping", "ready": "/ready", "description": "/api-description"}
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:3em auto;padding:0 1em;color-scheme:light dark}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.4em 1.5em .4em 0}"
    "tr+tr{border-top:1px solid #8884}td:nth-child(2n+1){overflow-wrap:anywhere;min-width:7em}.bad{color:#c33}"
)


class WelcomeService(Service):
    """The route of one daemon."""

    def __init__(self, registry: Registry, tokens: Tokens) -> None:
        self._registry, self._tokens = registry, tokens

    def routes(self, audience: Audience) -> Mapping[str, Route]:
        route = {Audience.CLIENTS: self._answer_checked, Audience.OPERATORS: self._answer}.get(audience)
        return {} if route is None else {"": route}

    def _answer_checked(self, exchange: Exchange, path: list[str]) -> None:
        tokens = self._tokens
        try:
            inference_check(tokens.inference, tokens.management, tokens.clients)(exchange.request)
        except DaemonError:
            if exchange.request.method in _READING:
                exchange.respond(json_response(_ALIVE))
                return
        self._answer(exchange, path)

    def _answer(self, exchange: Exchange, path: list[str]) -> None:
        del path
        if exchange.request.method not in _READING:
            raise ResourceNotFound  # the core's route knows the others
        exchange.respond(welcome(self._registry, exchange.request))


def welcome(registry: Registry, request: Request) -> Response:
    """Return the answer to a request for `/`."""
    accepted = request.header("accept").lower()
    if "text/html" in accepted:
        return Response(200, _page(_models(registry, request)).encode(), _HEADERS)
    if JSON[1] in accepted:
        return json_response({**_ALIVE, "models": _models(registry, request), "links": _LINKS})
    return json_response(_ALIVE)


def _models(registry: Registry, request: Request) -> list[dict[str, Any]]:
    """Return the versions that the client may ask, those that serve first."""
    allowed = [model for model in registry if request.may_see(model.name)]
    return [_document(registry, model) for model in sorted(allowed, key=lambda model: not model.available)]


def _document(registry: Registry, model: ModelVersion) -> dict[str, Any]:
    name, version = quote(model.name, safe=""), quote(model.version, safe="")
    path = name if registry.is_default(model) else f"{name}/{version}"
    declared = model.declared
    inputs = () if declared is None or declared.built_in else declared.inputs
    return {
        "name": model.name,
        "version": model.version,
        "state": model.word,
        "inputs": [{"name": each.name, "type": each.annotation or each.kind} for each in inputs],
        "links": {"predict": f"/predictions/{path}", "ready": f"/ready/{path}"},
    }


def _page(models: list[dict[str, Any]]) -> str:
    links = " · ".join(f'<a href="{path}">{path}</a>' for path in _LINKS.values())
    if models:
        head = "".join(f"<th>{title}</th>" for title in ("Model", "State", "Ask", "Version", "Takes"))
        body = f"<table><tr>{head}</tr>{''.join(map(_row, models))}</table>"
    else:
        body = "<p>No model is registered.</p>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Models</title>'
        f"<style>{_STYLE}</style></head>"
        f"<body><h1>Models</h1>{body}<p>{links}</p></body></html>\n"
    )


def _row(model: dict[str, Any]) -> str:
    takes = ", ".join(f"{each['name']}: {each['type']}" for each in model["inputs"])
    links, bad = model["links"], ' class="bad"' if model["state"] in STATES else ""
    cells = (
        escape(model["name"]),
        f'<a{bad} href="{escape(links["ready"])}">{escape(model["state"])}</a>',
        f"<code>POST {escape(links['predict'])}</code>",
        escape(model["version"]),
        escape(takes),
    )
    return f"<tr>{_cells(cells)}</tr>"


def _cells(texts: Iterable[str]) -> str:
    return "".join(f"<td>{text}</td>" for text in texts)
