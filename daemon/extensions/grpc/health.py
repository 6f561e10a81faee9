"""gRPC's health checks: `grpc.health.v1.Health`, as the probes of Kubernetes and load balancers call it.

The empty name is the daemon, which is SERVING where HTTP's `/ready` answers 200. Each model is a service by its name,
and each version by `MODEL/VERSION`. The names of the gRPC services have the daemon's health. Health needs no token: who
knows a name may ask for it, and the list names only the models that the caller may use.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from typing import Any

from tsctl.daemon.core.errors import ModelNotFound, NoReadyWorker, VersionNotFound
from tsctl.daemon.extensions.grpc.codes import Code
from tsctl.daemon.extensions.grpc.heads import CallHead
from tsctl.daemon.extensions.grpc.prediction import CallFailed
from tsctl.daemon.extensions.grpc.server import Method, methods_of
from tsctl.daemon.extensions.grpc.waiting.incoming_messages import WATCHERS, WATCHERS_OF_ONE, Requests, TooManyWatchers
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.routing.steering import answering, answering_of, are_ready

SERVICE = "grpc.health.v1.Health"
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3
_LOOK_EVERY = 0.5  # seconds between two looks of a watcher


class HealthService:
    """The calls of the service.

    Args:
        started: as in `inference_routes`.
        services: the gRPC services that are asked for by name.
        every: seconds between two looks of a watcher.

    Attributes:
        closing: set when the server closes: watchers end.
    """

    name = SERVICE

    def __init__(
        self, registry: Registry, started: Callable[[], bool], services: Collection[str], every: float = _LOOK_EVERY
    ) -> None:
        # Here, because protobuf is an optional dependency.
        from tsctl.daemon.extensions.grpc.protos.messages import message_class

        self._registry = registry
        self._started = started
        self._services = frozenset(services)
        self._every = every
        self._answer = message_class("grpc.health.v1.HealthCheckResponse")
        self._list = message_class("grpc.health.v1.HealthListResponse")
        self._watchers: Counter[str] = Counter()  # by peer
        self.closing = asyncio.Event()

    def status(self, service: str) -> int:
        """Return the status of a service, as the protocol numbers it."""
        if not service or service in self._services:
            ready = self._started() and are_ready(answering(self._registry))
            return SERVING if ready else NOT_SERVING
        name, _, version = service.partition("/")
        try:
            models = answering_of(self._registry, name, version)
        except NoReadyWorker:
            return NOT_SERVING
        except (ModelNotFound, VersionNotFound):
            return NOT_SERVING if self._registry.expects(name) else SERVICE_UNKNOWN
        return SERVING if are_ready(models) else NOT_SERVING

    async def check(self, request: Any, head: CallHead) -> Any:  # noqa: ARG002 - one signature for all
        """Return the status now; raise CallFailed with NOT_FOUND for an unknown service."""
        status = self.status(request.service)
        if status == SERVICE_UNKNOWN:
            raise CallFailed(Code.NOT_FOUND, f"Model not found: {request.service}", 404)
        return self._answer(status=status)

    async def list(self, request: Any, head: CallHead) -> Any:  # noqa: ARG002
        """Return the status of the daemon, and of each model that the caller may use."""
        models = (model.name for model in self._registry.defaults() if head.may_see(model.name))
        names = ["", *sorted(self._services), *models]
        return self._list(statuses={name: self._answer(status=self.status(name)) for name in names})

    async def watch(self, request: Any, head: CallHead) -> AsyncGenerator[Any]:
        """Yield the status now, and then each change, until the client leaves or the server closes.

        Raises:
            TooManyWatchers: so many calls watch already, of this connection or in all.
        """
        if self._watchers[head.peer] >= WATCHERS_OF_ONE:
            raise TooManyWatchers(WATCHERS_OF_ONE, "on one connection")
        if self._watchers.total() >= WATCHERS:
            raise TooManyWatchers(WATCHERS, "in all")
        self._watchers[head.peer] += 1
        try:
            async with aclosing(self._changes(request.service)) as changes:
                async for status in changes:
                    yield self._answer(status=status)
        finally:
            self._watchers[head.peer] -= 1
            if not self._watchers[head.peer]:
                del self._watchers[head.peer]

    async def _changes(self, service: str) -> AsyncGenerator[int]:
        last = None
        while not self.closing.is_set():
            status = self.status(service)
            if status != last:
                last = status
                yield status
            try:
                async with asyncio.timeout(self._every):
                    await self.closing.wait()
            except TimeoutError:
                continue
        if last != NOT_SERVING:
            yield NOT_SERVING


SERVICES = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")


class ReflectionService:
    """The one call of the service.

    Args:
        name: one of `SERVICES`.
        services: the names of all services at the address.
    """

    def __init__(self, name: str, services: Collection[str]) -> None:
        from tsctl.daemon.extensions.grpc.protos.messages import (  # here: protobuf is an optional dependency
            message_class,
            pool,
        )

        self.name = name
        self._services = sorted(services)
        self._pool = pool()
        package = name.rpartition(".")[0]
        self._message: Any = lambda word: message_class(f"{package}.{word}")

    async def server_reflection_info(self, requests: Requests, head: CallHead) -> AsyncGenerator[Any]:  # noqa: ARG002
        """Yield an answer to each question: the list of services, or the files that describe a name."""
        async for request in requests:
            answer = self._message("ServerReflectionResponse")(valid_host=request.host, original_request=request)
            asked = request.WhichOneof("message_request")
            try:
                if asked == "list_services":
                    answer.list_services_response.service.extend(
                        [self._message("ServiceResponse")(name=each) for each in self._services]
                    )
                elif asked == "file_by_filename":
                    self._describe(answer, self._pool.FindFileByName(request.file_by_filename))
                elif asked == "file_containing_symbol":
                    self._describe(answer, self._pool.FindFileContainingSymbol(request.file_containing_symbol))
                else:
                    raise KeyError(asked)
            except KeyError:
                answer.error_response.error_code = Code.NOT_FOUND
                answer.error_response.error_message = "There is no such file, name or extension."
            yield answer

    def _describe(self, answer: Any, file: Any) -> None:
        """Add a file, and those that it imports."""
        found: dict[str, bytes] = {}
        missing = [file]
        while missing:
            each = missing.pop()
            if each.name not in found:
                found[each.name] = each.serialized_pb
                missing += each.dependencies
        answer.file_descriptor_response.file_descriptor_proto.extend(found.values())


def reflection_of(services: Collection[str]) -> dict[str, Method]:
    """Return the methods of reflection, in both of its packages, for an address with these services."""
    names = {*services, *SERVICES}
    return methods_of(ReflectionService(SERVICES[0], names)) | methods_of(ReflectionService(SERVICES[1], names))
