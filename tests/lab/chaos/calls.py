"""Honest clients over gRPC: a request as over HTTP, and its answer as HTTP would have given it."""

from typing import Any

from daemon.api.grpc.protos.messages import message_class
from daemon.api.grpc.server import load_grpc
from tests.lab.chaos.peer import PATIENCE
from tests.lab.chaos.verdict import Asked, Told

_METHOD = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions"
_MESSAGES = "org.pytorch.serve.grpc.inference"
_STATUSES = {"RESOURCE_EXHAUSTED": 507, "UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504, "INTERNAL": 500}


class Channel:
    """A channel to TorchServe's service, which connects anew by itself.

    Args:
        address: HOST:PORT.
    """

    def __init__(self, address: str) -> None:
        self._grpc = load_grpc()
        self._request = message_class(f"{_MESSAGES}.PredictionsRequest")
        self._channel = self._grpc.insecure_channel(address, options=[("grpc.max_reconnect_backoff_ms", 1000)])
        self._call = self._channel.unary_unary(
            _METHOD,
            request_serializer=self._request.SerializeToString,
            response_deserializer=message_class(f"{_MESSAGES}.PredictionResponse").FromString,
        )

    def ask(self, model: str, asked: Asked) -> Told | None:
        """Return the answer; None where the server was replaced meanwhile, which clients of gRPC repeat."""
        request: Any = self._request(model_name=model)
        request.input["body"] = asked.body
        metadata = [("x-request-id", asked.id)]
        try:
            answer = self._call(request, metadata=metadata, timeout=PATIENCE, wait_for_ready=True)
        except self._grpc.RpcError as error:
            name, text = error.code().name, error.details() or ""
            if name in ("UNAVAILABLE", "CANCELLED") and asked.id not in text:
                return None
            # Over HTTP the end of a worker is 507, and over gRPC no quota of the caller's.
            status = 507 if "The worker died" in text else _STATUSES.get(name, 400)
            return Told(status, {"x-request-id": asked.id}, f"{name}: {text}".encode())
        # A call cannot say that it is the last that a replaced daemon answers, so each may be.
        return Told(200, {"x-request-id": asked.id, "connection": "close"}, answer.prediction)

    def close(self) -> None:
        self._channel.close()
