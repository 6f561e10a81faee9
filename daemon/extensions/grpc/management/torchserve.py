"""TorchServe's management service: `org.pytorch.serve.grpc.management.ManagementAPIsService`.

The messages are those of HTTP's management API: its sentence where it answers with one, else its document. In proto3 a
number of 0 and an empty text are not there: 0 workers means the default, and a scale to 0 means to 1; HTTP can say 0.
"""

import json
from typing import Any

from tsctl.daemon.extensions.grpc.heads import CallHead
from tsctl.daemon.extensions.grpc.management.relay import Query, Routes, relay
from tsctl.daemon.extensions.grpc.oip import OpenInferenceService
from tsctl.daemon.extensions.grpc.prediction import ServiceParts


class RepositoryService(OpenInferenceService):
    """The Open Inference Protocol's service at a management address, with the repository that Triton's clients ask.

    At other addresses the repository's calls are refused: they change what is served.
    """

    def __init__(self, name: str, parts: ServiceParts, routes: Routes) -> None:
        super().__init__(name, parts)
        self._routes = routes

    async def repository_index(self, request: Any, head: CallHead) -> Any:
        """Return the registered versions, and whether they are ready."""
        body = json.dumps({"ready": request.ready}).encode()
        models = await relay(self._routes, "POST", ["v2", "repository", "index"], {}, head, body)
        return self._message("RepositoryIndex")(models=models)

    async def repository_model_load(self, request: Any, head: CallHead) -> Any:
        """Start the workers of a model's default version; return when they are ready."""
        name = await self._change(request, "load", head)
        return self._message("RepositoryModelLoad")(model_name=name, isLoaded=True)

    async def repository_model_unload(self, request: Any, head: CallHead) -> Any:
        """Stop the workers of a model's default version, which stays registered."""
        name = await self._change(request, "unload", head)
        return self._message("RepositoryModelUnload")(model_name=name, isUnloaded=True)

    async def _change(self, request: Any, action: str, head: CallHead) -> str:
        name: str = request.model_name or request.repository_name  # KServe's clients have one field, in its place
        body = json.dumps({"parameters": dict.fromkeys(request.parameters, True)}).encode()  # their names suffice
        await relay(self._routes, "POST", ["v2", "repository", "models", name, action], {}, head, body)
        return name


SERVICE = "org.pytorch.serve.grpc.management.ManagementAPIsService"
_REGISTRATION = (
    "batch_size", "handler", "initial_workers", "max_batch_delay", "model_name", "response_timeout", "runtime",
    "synchronous", "url", "s3_sse_kms", "startup_timeout",
)  # fmt: skip


class ManagementService:
    """The calls of the service; each takes a parsed request, and returns a message.

    Args:
        routes: HTTP's routes of a management address.
    """

    name = SERVICE

    def __init__(self, routes: Routes) -> None:
        # Here, because protobuf is an optional dependency.
        from tsctl.daemon.extensions.grpc.protos.messages import message_class

        self._routes = routes
        self._answer = message_class("org.pytorch.serve.grpc.management.ManagementResponse")

    async def describe_model(self, request: Any, head: CallHead) -> Any:
        return await self._ask("GET", _path(request), {"customized": request.customized}, head)

    async def list_models(self, request: Any, head: CallHead) -> Any:
        """Return the page of models that follows a token."""
        query = {"limit": request.limit, "next_page_token": request.next_page_token}
        return await self._ask("GET", ["models"], query, head)

    async def register_model(self, request: Any, head: CallHead) -> Any:
        """Register an archive; return when its workers are ready, if the request is synchronous."""
        query = {name: getattr(request, name) for name in _REGISTRATION}
        return await self._ask("POST", ["models"], {**query, "synchronous": _flag(request.synchronous)}, head)

    async def scale_worker(self, request: Any, head: CallHead) -> Any:
        """Change the number of a version's workers."""
        query = {
            "min_worker": request.min_worker, "max_worker": request.max_worker,
            "synchronous": _flag(request.synchronous),
        }  # fmt: skip
        return await self._ask("PUT", _path(request), query, head)

    async def set_default(self, request: Any, head: CallHead) -> Any:
        return await self._ask("PUT", [*_path(request), "set-default"], {}, head)

    async def unregister_model(self, request: Any, head: CallHead) -> Any:
        return await self._ask("DELETE", _path(request), {}, head)

    async def _ask(self, method: str, path: list[str], query: Query, head: CallHead) -> Any:
        document = await relay(self._routes, method, path, query, head)
        sentence = document.get("status") if isinstance(document, dict) else None
        return self._answer(msg=sentence or json.dumps(document, indent=2))


def _path(request: Any) -> list[str]:
    return ["models", request.model_name, *([request.model_version] if request.model_version else [])]


def _flag(value: bool) -> str:
    return "true" if value else "false"  # as text, because HTTP's default may be true
