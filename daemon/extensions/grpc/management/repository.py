"""The Open Inference Protocol's service at a management address, with the repository that Triton's clients ask.

At other addresses the repository's calls are refused: they change what is served.
"""

import json
from collections.abc import Callable
from typing import Any

from tsctl.daemon.extensions.grpc.heads import CallHead
from tsctl.daemon.extensions.grpc.management.relay import Routes, relay
from tsctl.daemon.extensions.grpc.oip import OpenInferenceService
from tsctl.daemon.extensions.grpc.waiting.arrivals import Arrivals
from tsctl.daemon.extensions.grpc.waiting.awaited import AwaitedModels
from tsctl.daemon.models.registry import Registry


class RepositoryService(OpenInferenceService):
    """The protocol's calls, and those of its repository."""

    def __init__(
        self,
        name: str,
        registry: Registry,
        started: Callable[[], bool],
        models: AwaitedModels,
        arrivals: Arrivals,
        routes: Routes,
    ) -> None:
        super().__init__(name, registry, started, models, arrivals)
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
