"""Live streams over gRPC, of the Open Inference Protocol and of TorchServe's service, for tests/lab/real/streams.py."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.e2e.served import Served
from tests.extensions.grpc.calls import OPEN_INFERENCE, TORCHSERVE
from tests.lab.harness.peer import PATIENCE
from tsctl.daemon.extensions.grpc.protos.messages import message_class
from tsctl.daemon.extensions.grpc.server import load_grpc

OPTIONS = ("--grpc-address", "127.0.0.1:0")


def ways(served: Served, model: str) -> dict[str, Callable[[str, Any, bool, bool], float]]:
    channel = load_grpc().insecure_channel(served.status["grpcAddresses"][0].partition("://")[2])

    def method(service: str, kind: str) -> tuple[Any, Any]:
        request = message_class(f"{kind}Request")
        answer = message_class(f"{kind.removesuffix('s')}Response")
        call = channel.unary_unary(
            f"/{service}", request_serializer=request.SerializeToString, response_deserializer=answer.FromString
        )
        return request, call

    infer, infers = method(OPEN_INFERENCE, "inference.ModelInfer")
    predict, predicts = method(TORCHSERVE, "org.pytorch.serve.grpc.inference.Predictions")

    def by_tensors(stream: str, piece: Any, start: bool, end: bool) -> float:
        request: Any = infer(model_name=model, raw_input_contents=[piece.astype("<f4").tobytes()])
        request.inputs.add(name="pieces", datatype="FP32", shape=list(piece.shape))
        request.parameters["sequence_id"].string_param = stream
        request.parameters["sequence_start"].bool_param = start
        request.parameters["sequence_end"].bool_param = end
        answer = infers(request, timeout=PATIENCE)
        return float(answer.raw_output_contents[0][4:])  # the text of JSON, after its length

    def by_headers(stream: str, piece: Any, start: bool, end: bool) -> float:
        body = io.BytesIO()
        np.save(body, piece)
        request: Any = predict(model_name=model)
        request.input["body"] = body.getvalue()
        marks = [("ts_request_sequence_id", stream)]
        marks += [("ts_request_sequence_start", "true")] * start + [("ts_request_sequence_end", "true")] * end
        return float(predicts(request, metadata=marks, timeout=PATIENCE).prediction)

    return {"gRPC": by_tensors, "gRPC of TorchServe": by_headers}
