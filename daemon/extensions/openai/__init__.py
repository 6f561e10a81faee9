"""OpenAI's API for completions and chats, over text handlers.

POST /v1/completions, /v1/chat/completions  →  requests.py: a row of named parts  →  the model
whole texts and pieces of the model         →  completion.py: the API's JSON, or server-sent events
"""

from collections.abc import Mapping
from typing import Any

from tsctl.daemon.declarations import ClientProtocol, Operations, PathFacts
from tsctl.daemon.extension import Extension, Kernel, Service

_PATHS = (["v1", "models"], ["v1", "completions"], ["v1", "chat", "completions"])


class OpenAIProtocol(ClientProtocol):
    segments = ("v1",)
    prefixes = ("/v1/completions", "/v1/chat/")

    def facts(self, path: list[str]) -> PathFacts | None:
        return PathFacts() if path in _PATHS else None

    def error(self, status: int, kind: str, message: str) -> Mapping[str, Any]:
        return {"error": {"message": message, "type": kind, "param": None, "code": status}}

    def operations(self) -> Operations:
        from tsctl.daemon.api.inference.openapi import prediction

        names = {"openaiCompletion": "/v1/completions", "openaiChatCompletion": "/v1/chat/completions"}
        return {path: {"post": prediction(name, path)} for name, path in names.items()}


class OpenAIExtension(Extension):
    name = "openai"
    protocol = OpenAIProtocol()

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.openai.completion import OpenAIService

        return OpenAIService(kernel)
