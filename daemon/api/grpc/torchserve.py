"""TorchServe's service of predictions: `org.pytorch.serve.grpc.inference.InferenceAPIsService`."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from daemon.api.grpc.awaited import AwaitedModels
from daemon.api.grpc.heads import CallHead
from daemon.api.grpc.prediction import replies_to
from daemon.core.job import Param
from daemon.models.registry import Registry

SERVICE = "org.pytorch.serve.grpc.inference.InferenceAPIsService"
_PACKAGE = "org.pytorch.serve.grpc.inference"


class InferenceService:
    """The calls of the service; each takes a parsed request, and returns or yields messages."""

    name = SERVICE

    def __init__(self, registry: Registry, models: AwaitedModels) -> None:
        from daemon.api.grpc.protos.messages import message_class  # here, because protobuf is an optional dependency

        self._registry = registry
        self._models = models
        self._answer = message_class(f"{_PACKAGE}.PredictionResponse")
        self._health = message_class(f"{_PACKAGE}.TorchServeHealthResponse")

    async def ping(self, request: Any, head: CallHead) -> Any:  # noqa: ARG002 - one signature for all
        """Return whether every default version has all its workers, in the JSON of HTTP's `/ping`."""
        healthy = all(model.healthy for model in self._registry.defaults())
        return self._health(health=json.dumps({"status": "Healthy" if healthy else "Unhealthy"}, indent=2))

    async def predictions(self, request: Any, head: CallHead) -> Any:
        """Return the whole answer; the pieces of a streamed one are joined."""
        async with aclosing(self.stream_predictions(request, head)) as answers:
            found = [answer async for answer in answers]
        whole = self._answer(prediction=b"".join([each.prediction for each in found]))
        if found and found[0].HasField("sequence_id"):
            whole.sequence_id = found[0].sequence_id
        return whole

    async def stream_predictions(self, request: Any, head: CallHead) -> AsyncGenerator[Any]:
        """Yield the answer piece by piece, as the handler sends it."""
        model = await self._models.find(request.model_name, request.model_version or None)
        name: str = model.settings.sequence_headers.id
        if request.HasField("sequence_id"):
            head = head.with_header(name, request.sequence_id)
        params = [Param(name, "", value) for name, value in request.input.items()]
        async with aclosing(replies_to(model, head, params, unnamed=not request.model_version)) as replies:
            async for reply in replies:
                answer = self._answer(prediction=reply.body)
                told = [value for key, value in reply.headers if key.lower() == name.lower()]
                named = told[0] if told else request.sequence_id
                if named:
                    answer.sequence_id = named
                yield answer

    async def stream_predictions2(self, requests: AsyncIterator[Any], head: CallHead) -> AsyncGenerator[Any]:
        """Yield the answers to requests that come one by one, in their order."""
        now = asyncio.get_running_loop().time
        async for request in requests:
            async with aclosing(self.stream_predictions(request, head.of_next(now()))) as answers:
                async for answer in answers:
                    yield answer
