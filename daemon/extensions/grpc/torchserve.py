"""TorchServe's service of predictions: `org.pytorch.serve.grpc.inference.InferenceAPIsService`."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from tsctl.daemon.core.arena import share_steps
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Param, Reply
from tsctl.daemon.extensions.grpc.codes import code_of
from tsctl.daemon.extensions.grpc.heads import CallHead
from tsctl.daemon.extensions.grpc.prediction import CallFailed, ServiceParts, replies_at_end, replies_to
from tsctl.daemon.extensions.grpc.waiting.incoming_messages import Requests
from tsctl.daemon.models.routing.steering import answering
from tsctl.daemon.models.version import ModelVersion

SERVICE = "org.pytorch.serve.grpc.inference.InferenceAPIsService"
_PACKAGE = "org.pytorch.serve.grpc.inference"
SEQUENCE_HEADER = "ts_request_sequence_id"


class InferenceService:
    """The calls of the service; each takes a parsed request, and returns or yields messages.

    Args:
        sequence_header: over HTTP has the id of a request's sequence.
    """

    name = SERVICE

    def __init__(self, parts: ServiceParts, sequence_header: str = SEQUENCE_HEADER) -> None:
        # Here, because protobuf is an optional dependency.
        from tsctl.daemon.extensions.grpc.protos.messages import message_class

        self._parts = parts
        self._sequence_header = sequence_header
        self._answer = message_class(f"{_PACKAGE}.PredictionResponse")
        self._health = message_class(f"{_PACKAGE}.TorchServeHealthResponse")

    async def ping(self, request: Any, head: CallHead) -> Any:  # noqa: ARG002 - one signature for all
        """Return whether every default version has all its workers, in the JSON of HTTP's `/ping`."""
        healthy = all(model.healthy for model in answering(self._parts.registry))
        return self._health(health=json.dumps({"status": "Healthy" if healthy else "Unhealthy"}, indent=2))

    async def predictions(self, request: Any, head: CallHead) -> Any:
        """Return the whole answer; the pieces of a streamed one are joined."""
        model, head, params = await self._prepared(request, head)
        unnamed, asked = not request.model_version, request.sequence_id
        del request  # as large as the parameters, which the job has
        replies = await replies_at_end(self._parts.arrivals, model, head, params, unnamed=unnamed, repeatable=True)
        answer = self._answer(prediction=b"".join([each.body for each in replies]))
        if replies and (sequence := self._sequence_of(replies[0], asked)):
            answer.sequence_id = sequence
        return answer

    async def stream_predictions(self, request: Any, head: CallHead) -> AsyncGenerator[Any]:
        """Yield the answer piece by piece, as the handler sends it."""
        model, head, params = await self._prepared(request, head)
        unnamed, asked = not request.model_version, request.sequence_id
        del request
        async with aclosing(replies_to(model, head, params, unnamed=unnamed, repeatable=True)) as replies:
            async for reply in replies:
                answer = self._answer(prediction=reply.body)
                if sequence := self._sequence_of(reply, asked):
                    answer.sequence_id = sequence
                yield answer

    async def stream_predictions2(self, requests: Requests, head: CallHead) -> AsyncGenerator[Any]:
        """Yield the answers to requests that come one by one, in their order.

        An error is the answer to its request, in `status` as in TorchServe, and the stream goes on.
        """
        now = asyncio.get_running_loop().time
        async for request in requests:
            try:
                async with aclosing(self.stream_predictions(request, head.of_next(now()))) as answers:
                    async for answer in answers:
                        yield answer
            except (CallFailed, DaemonError) as error:
                code = error.code if isinstance(error, CallFailed) else code_of(error)
                answer = self._answer(status={"code": int(code), "message": str(error)})
                if request.HasField("sequence_id"):
                    answer.sequence_id = request.sequence_id
                yield answer

    async def _prepared(self, request: Any, head: CallHead) -> tuple[ModelVersion, CallHead, list[Param]]:
        """Return the version that answers, the call's head with the id of its sequence, and the parameters.

        Large ones are copied in turns with other calls. The inputs are a map, which has no order on the wire: handlers,
        caches and recordings get them by name.
        """
        name, version = request.model_name, request.model_version or None
        model: ModelVersion

        async def find() -> None:  # again after each turn: it may have been replaced
            nonlocal model
            model = await self._parts.models.find(name, version, head, request.ByteSize)

        await find()
        params = [
            Param(key, "", await self._parts.turns.finish(share_steps(value, self._parts.take), find))
            for key, value in sorted(request.input.items())
        ]
        if request.HasField("sequence_id"):
            head = head.with_headers((self._sequence_header, request.sequence_id))
        return model, head, params

    def _sequence_of(self, reply: Reply, asked: str) -> str:
        wanted = self._sequence_header.lower()
        return next((value for name, value in reply.headers if name.lower() == wanted), asked)
