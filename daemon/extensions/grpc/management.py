"""Management over gRPC: TorchServe's service and the protocol's repository, answered by HTTP's own routes.

One implementation, one set of sentences. TorchServe's messages are those of HTTP's management API: its sentence where
it answers with one, else its document. In proto3 a number of 0 and an empty text are not there: 0 workers means the
default, and a scale to 0 means to 1; HTTP can say 0.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import quote, urlencode

from tsctl.daemon.core.errors import ResourceNotFound
from tsctl.daemon.core.job import Caller
from tsctl.daemon.extensions.grpc.codes import code_of_status
from tsctl.daemon.extensions.grpc.heads import CallHead
from tsctl.daemon.extensions.grpc.oip import OpenInferenceService
from tsctl.daemon.extensions.grpc.prediction import CallFailed, ServiceParts
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Request, Response
from tsctl.daemon.http.router import Route

Routes = Mapping[str, Route]
Query = Mapping[str, str | int | bool]


class RelayedExchange:
    """A request that did not come over HTTP, and its answer, for routes that answer at once and whole.

    Attributes:
        response: None until the route has answered.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.response: Response | None = None
        self.on_leave: Callable[[bool], bool] | None = None
        self.caller = Caller()
        self.done = False

    def respond(self, response: Response) -> None:
        if not self.done:
            self.response, self.done = response, True


async def relay(routes: Routes, method: str, path: list[str], query: Query, head: CallHead, body: bytes = b"") -> Any:
    """Return the JSON document with which a route answers; the first segment of the path names the route.

    Args:
        query: parameters; those that are empty, 0 or False are left out, which proto3 cannot tell from absent ones.

    Raises:
        DaemonError: the route rejects the request.
        CallFailed: the route answers with an error.
    """
    said = {name: str(value).lower() if value is True else str(value) for name, value in query.items() if value}
    target = f"/{'/'.join(quote(each, safe='') for each in path)}{'?' if said else ''}{urlencode(said)}"
    exchange = RelayedExchange(Request(method, target, [], body, began=head.began, received=head.received, id=head.id))
    if path[0] not in routes:
        raise ResourceNotFound
    answered = routes[path[0]](cast(Exchange, exchange), path[1:])
    if inspect.isawaitable(answered):
        await answered
    response = exchange.response
    assert response is not None, target
    if response.status >= 400:
        raise CallFailed(code_of_status(response.status), bytes(response.body).decode(), response.status)
    return json.loads(bytes(response.body))


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
