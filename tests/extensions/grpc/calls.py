"""Calls over gRPC, of TorchServe's service and of the Open Inference Protocol's."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.lab.harness.peer import PATIENCE
from tsctl.daemon.extensions.grpc.protos.messages import message_class
from tsctl.daemon.extensions.grpc.server import load_grpc

TORCHSERVE = "org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions"
OPEN_INFERENCE = "inference.GRPCInferenceService/ModelInfer"


class Ended(NamedTuple):
    """A status such as OK, the body or the error's sentence, and whether that says when to come again."""

    status: str
    body: bytes
    retry_after: bool = False


class Channel:
    """A channel to one of the services, which connects anew by itself.

    Args:
        address: HOST:PORT.
        service: `TORCHSERVE` or `OPEN_INFERENCE`.
    """

    def __init__(self, address: str, service: str) -> None:
        self._grpc = load_grpc()
        self._ours = service == TORCHSERVE
        kind = "org.pytorch.serve.grpc.inference.Prediction" if self._ours else "inference.ModelInfer"
        self._request = message_class(f"{kind}sRequest" if self._ours else f"{kind}Request")
        self._channel = self._grpc.insecure_channel(address, options=[("grpc.max_reconnect_backoff_ms", 1000)])
        self._call = self._channel.unary_unary(
            f"/{service}",
            request_serializer=self._request.SerializeToString,
            response_deserializer=message_class(f"{kind}Response").FromString,
        )

    def ask(self, model: str, body: bytes, metadata: Sequence[tuple[str, str]], version: str = "") -> Ended:
        request: Any = self._request(model_name=model, model_version=version)
        if self._ours:
            request.input["body"] = body
        else:
            request.inputs.add(name="words", datatype="BYTES", shape=[1]).contents.bytes_contents.append(body)
        try:
            answer = self._call(request, metadata=metadata, timeout=PATIENCE, wait_for_ready=True)
        except self._grpc.RpcError as error:
            later = any(key == "retry-after" for key, _ in error.trailing_metadata() or ())
            return Ended(error.code().name, (error.details() or "").encode(), later)
        return Ended("OK", answer.prediction if self._ours else answer.outputs[0].contents.bytes_contents[0])

    def close(self) -> None:
        self._channel.close()
