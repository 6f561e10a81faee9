"""OpenAI's API, as its clients speak it, and its worst bodies."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from msgspec import inspect

from tests.kit.protocols import Body, Cases, Protocol, Sized
from tests.lab.benchmarks import schemas
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.extensions.openai import requests
from tsctl.daemon.extensions.openai.completion import openai_routes

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def predict(model: str) -> tuple[str, bytes]:
    return CHAT, json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]}).encode()


def worst_bodies(size: int) -> Iterator[tuple[str, Body]]:
    """Yield requests of about `size` bytes each: what is filled with what, and the request."""
    message, part = requests._Message, requests._Part
    prompt = b'{"model":"sized","prompt":%b}'.__mod__
    yield "prompt: many", schemas.made(prompt, partial(schemas.many_of, b'""', size))
    yield "prompt: escapes", schemas.made(prompt, lambda: b'"' + schemas.many(rb"\"", b"", size) + b'"')
    yield "prompt: a long text", schemas.made(prompt, lambda: b'"' + "\u20ac".encode() * (size // 3) + b'"')
    yield "members", lambda: b'{"model":"sized",' + schemas.many(b'"a":1,', b'"prompt":""', size) + b"}"
    messages = b'{"model":"sized","messages":%b}'.__mod__
    least = schemas.least(inspect.type_info(message))
    yield "messages: many", schemas.made(messages, partial(schemas.many_of, least, size))
    for name, value in schemas.json_bodies(message, size):
        yield f"message {name}", schemas.made(b'{"model":"sized","messages":[%b]}'.__mod__, value)
    for name, value in schemas.json_bodies(part, size):
        content = b'{"model":"sized","messages":[{"role":"user","content":[%b]}]}'.__mod__
        yield f"part {name}", schemas.made(content, value)


def cases(size: int) -> Cases:
    for name, body in worst_bodies(size):
        document = body()
        yield partial(_steps, chat=_is_chat(document)), name, document


def _steps(body: bytes, *, chat: bool) -> Steps[Any]:
    return requests.read_steps(body, chat=chat)


def _is_chat(document: bytes) -> bool:
    return b'"messages"' in document[:100]


def sized() -> Iterator[Sized]:
    from tests.lab.benchmarks.bodies import over_http

    def send(body: bytes, size: int) -> Any:
        return over_http(CHAT if _is_chat(body) else COMPLETIONS, False, body, size)

    yield "OpenAI", worst_bodies, send


def oversized(model: str, size: int) -> tuple[tuple[str, bytes, str], ...]:
    named = b'{"model":"' + model.encode() + b'",'
    messages = b",".join([b'{"role":"user","content":""}'] * (size // 29))
    parameters = b",".join(b'"%x":1' % number for number in range(size // 12))
    return (
        (CHAT, named + b'"messages":[' + messages + b"]}", ""),
        (CHAT, named + parameters + b"}", ""),
        (COMPLETIONS, named + b'"prompt":' + b"[" * size, ""),
    )


PROTOCOL = Protocol(
    name="OpenAI", predict=predict, lists=("/v1/models",), routes=openai_routes, cases={"OpenAI": cases}, sized=sized,
    oversized=oversized,
)  # fmt: skip
