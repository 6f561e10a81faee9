"""Server reflection: clients without stubs, such as grpcurl, ask which services there are, and what they look like."""

from collections.abc import AsyncGenerator, AsyncIterator, Collection
from typing import Any

from tsctl.daemon.extensions.grpc.codes import Code
from tsctl.daemon.extensions.grpc.heads import CallHead
from tsctl.daemon.extensions.grpc.server import Method, methods_of

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

    async def server_reflection_info(self, requests: AsyncIterator[Any], head: CallHead) -> AsyncGenerator[Any]:  # noqa: ARG002
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
