"""The Open Inference Protocol's service, `inference.GRPCInferenceService`, as KServe's and Triton's clients call it.

TorchServe's copy is in another package, which its own clients alone know; the calls are the same.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, NamedTuple

from tsctl.daemon.core.errors import DaemonError, ModelNotFound, NoReadyWorker, NotServed, VersionNotFound
from tsctl.daemon.core.job import Piece, Reply
from tsctl.daemon.extensions.grpc.codes import Code
from tsctl.daemon.extensions.grpc.heads import CallHead
from tsctl.daemon.extensions.grpc.prediction import CallFailed, ServiceParts, replies_at_end, replies_to
from tsctl.daemon.extensions.grpc.tensor_contents import read_steps, write_steps
from tsctl.daemon.extensions.grpc.waiting.incoming_messages import Requests
from tsctl.daemon.extensions.grpc.waiting.ordered_answers import in_order
from tsctl.daemon.extensions.tensors.metadata import model_config, model_metadata, server_metadata, statistics_of
from tsctl.daemon.extensions.tensors.prepared_request import PreparedRequest, prepare
from tsctl.daemon.models.routing.steering import answering, answering_of, are_ready
from tsctl.daemon.models.version import ModelVersion

SERVICES = ("inference.GRPCInferenceService", "org.pytorch.serve.grpc.openinference.GRPCInferenceService")
# Triton's parameters of streams.
_FINAL, _EMPTY_FINAL = "triton_final_response", "triton_enable_empty_final_response"
_IN_PIECES = "The model answers in pieces: call ModelStreamInfer."


class OpenInferenceService:
    """The calls of the service; each takes a parsed request, and returns a message.

    Args:
        name: one of `SERVICES`.
    """

    def __init__(self, name: str, parts: ServiceParts) -> None:
        # Here, because protobuf is an optional dependency.
        from tsctl.daemon.extensions.grpc.protos.messages import message_class

        self.name = name
        self._parts = parts
        self._registry = parts.registry
        package = name.rpartition(".")[0]
        self._message: Callable[[str], Any] = lambda word: message_class(f"{package}.{word}Response")
        self._answer = self._message("ModelInfer")

    async def server_live(self, request: Any, head: CallHead) -> Any:  # noqa: ARG002 - one signature for all
        """Return that the event loop is running."""
        return self._message("ServerLive")(live=True)

    async def server_ready(self, request: Any, head: CallHead) -> Any:  # noqa: ARG002
        """Return whether every default version has a ready worker."""
        ready = self._parts.started() and are_ready(answering(self._registry))
        return self._message("ServerReady")(ready=ready)

    async def server_metadata(self, request: Any, head: CallHead) -> Any:  # noqa: ARG002
        """Return the server's name, version and extensions."""
        return self._message("ServerMetadata")(**server_metadata())

    async def model_ready(self, request: Any, head: CallHead) -> Any:
        """Return whether a version has a ready worker; False also for one that is not there, as Triton does."""
        head.check_model(request.name)
        try:
            models = answering_of(self._registry, request.name, request.version)
        except (ModelNotFound, VersionNotFound, NoReadyWorker):
            return self._message("ModelReady")(ready=False)
        return self._message("ModelReady")(ready=are_ready(models))

    async def model_metadata(self, request: Any, head: CallHead) -> Any:
        """Return the names and types of a version's tensors."""
        head.check_model(request.name)
        model = self._registry.find(request.name, request.version or None)
        versions = [model] if request.version else self._registry.versions(model.name)
        return self._message("ModelMetadata")(**model_metadata(model, versions))

    async def model_config(self, request: Any, head: CallHead) -> Any:
        """Return the configuration of a version, as Triton's clients read it; without versions, numbers there."""
        head.check_model(request.name)
        document = model_config(self._registry.find(request.name, request.version or None))
        del document["version_policy"]
        return self._message("ModelConfig")(config=document)

    async def model_statistics(self, request: Any, head: CallHead) -> Any:
        """Return the statistics of a version, of all versions of a model, or of all models, as Triton does."""
        if not request.name:
            client = head.client
            versions = [each for each in self._registry if client is None or client.may_use(each.name)]
        else:
            head.check_model(request.name)
            model = self._registry.find(request.name, request.version or None)
            versions = [model] if request.version else self._registry.versions(model.name)
        documents = list(map(statistics_of, versions))
        for document in documents:
            del document["batch_stats"]
        return self._message("ModelStatistics")(model_stats=documents)

    async def model_infer(self, request: Any, head: CallHead) -> Any:
        """Return the model's answer: typed contents to typed contents, raw bytes to raw bytes.

        Raises:
            BadRequest: the request is malformed, or contradicts the model's declaration.
            CallFailed: the model failed, or its answer is none of the protocol.
            DaemonError: the version does not accept the job.
        """
        unnamed, asked = not request.model_version, _Origin(request.id, bool(request.raw_input_contents))
        model, prepared = await self._prepared(request, head)
        if model.declared is not None and model.declared.streams:
            model.metrics.refused(error := NotServed(_IN_PIECES))
            raise error
        head = head.with_headers(*prepared.headers)
        del request  # as large as the parameters, which the job has
        replies = await replies_at_end(
            self._parts.arrivals, model, head, prepared.params, prepared.head, unnamed=unnamed
        )
        if len(replies) != 1:
            raise NotServed(_IN_PIECES)
        return await self._answer_of(model, asked, prepared, replies[0])

    async def model_stream_infer(self, requests: Requests, head: CallHead) -> AsyncGenerator[Any]:
        """Yield the answers to requests that come one by one, in their order; an answer in pieces is several.

        An error is the answer to its request, and the stream goes on. The last message of each answer says that it is
        the last, as Triton's clients read it; where the model ends without one, and the request asks for it
        (`triton_enable_empty_final_response`), an empty one does.
        """
        now = asyncio.get_running_loop().time
        message = self._message("ModelStreamInfer")

        async def each(request: Any) -> AsyncGenerator[Any]:
            asked, answers = request.id, self._answers(request, head.of_next(now()))
            del request
            requests.activity.begin()
            try:
                async with aclosing(answers):
                    async for answer in answers:
                        yield message(infer_response=answer)
            except (CallFailed, DaemonError) as error:
                # The id tells the client which of its requests failed.
                yield message(
                    error_message=str(error), infer_response={"id": asked, "parameters": {_FINAL: {"bool_param": True}}}
                )
            finally:
                requests.activity.end()

        async with aclosing(in_order(requests, each, _size)) as answers:
            async for answer in answers:
                yield answer

    async def repository_index(self, request: Any, head: CallHead) -> Any:  # noqa: ARG002
        """Refuse: the repository is part of management."""
        sentence = "The model repository is part of management: call it at an address of --grpc-management-address."
        raise CallFailed(Code.PERMISSION_DENIED, sentence, 403)

    async def repository_model_load(self, request: Any, head: CallHead) -> Any:
        return await self.repository_index(request, head)

    async def repository_model_unload(self, request: Any, head: CallHead) -> Any:
        return await self.repository_index(request, head)

    async def _answers(self, request: Any, head: CallHead) -> AsyncGenerator[Any]:
        """Yield the model's answer, or its pieces; errors as `model_infer`."""
        empty_end = _EMPTY_FINAL in request.parameters and request.parameters[_EMPTY_FINAL].bool_param
        unnamed, asked = not request.model_version, _Origin(request.id, bool(request.raw_input_contents))
        model, prepared = await self._prepared(request, head)
        head = head.with_headers(*prepared.headers)
        del request
        answers = replies_to(model, head, prepared.params, prepared.head, unnamed=unnamed, with_end=True)
        in_pieces = False
        async with aclosing(answers) as replies:
            async for reply in replies:
                is_last = not isinstance(reply, Piece)
                if is_last and in_pieces and not reply.body:  # the end alone
                    if not empty_end:
                        break
                    answer = self._answer(model_name=model.name, model_version=model.version, id=asked.id)
                else:
                    answer = await self._answer_of(model, asked, prepared, reply)
                answer.parameters[_FINAL].bool_param = is_last
                in_pieces = True
                yield answer

    async def _prepared(self, request: Any, head: CallHead) -> tuple[ModelVersion, PreparedRequest]:
        """Return the version that answers, and the request as its job carries it; a refusal is counted.

        A large request is read in turns with others. Raise as `read_steps` and `prepare`.
        """
        name, version = request.model_name, request.model_version or None
        model: ModelVersion

        async def find() -> None:  # again after each turn: it may have been replaced
            nonlocal model
            model = await self._parts.models.find(name, version, head, request.ByteSize)

        await find()
        try:
            read = await self._parts.turns.finish(read_steps(request, self._parts.take), find)
            return model, prepare(model, read)
        except DaemonError as error:
            model.metrics.refused(error)
            raise

    async def _answer_of(self, model: ModelVersion, asked: "_Origin", prepared: PreparedRequest, reply: Reply) -> Any:
        """Return the message of one reply. Raise CallFailed if the reply is no answer of the protocol."""
        try:
            answer = prepared.read(reply)
        except ValueError as error:
            raise CallFailed(Code.INTERNAL, str(error), 503) from None
        named = answer._replace(model_name=model.name, model_version=model.version, id=answer.id or asked.id)
        message = self._answer()
        for _ in write_steps(named, message, raw=asked.raw):
            await asyncio.sleep(0)  # others are served between two slices of the elements
        return message


class _Origin(NamedTuple):
    """Of a request that has become a job: its id, and whether its contents were raw."""

    id: str
    raw: bool


def _size(message: Any) -> int:
    found: int = message.ByteSize()
    return found
