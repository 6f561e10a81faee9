"""The messages on the wire, byte for byte; the expected bytes are written by hand from protobuf's encoding."""

import subprocess
import sys

import pytest
from google.protobuf import descriptor_pool

from tsctl.daemon.extensions.grpc.protos import messages

INFERENCE = "org.pytorch.serve.grpc.inference"
MANAGEMENT = "org.pytorch.serve.grpc.management"
OPEN = "org.pytorch.serve.grpc.openinference"


OF_TORCHSERVE = "Ping Predictions StreamPredictions StreamPredictions2"
OF_MANAGEMENT = "DescribeModel ListModels RegisterModel ScaleWorker SetDefault UnregisterModel"
OF_OIP = (
    "ServerLive ServerReady ModelReady ServerMetadata ModelMetadata ModelInfer"
    " ModelStreamInfer ModelConfig ModelStatistics RepositoryIndex RepositoryModelLoad RepositoryModelUnload"
)


@pytest.mark.parametrize(
    ("service", "calls", "answers_in_pieces"),
    [
        (f"{INFERENCE}.InferenceAPIsService", OF_TORCHSERVE, "StreamPredictions StreamPredictions2"),
        (f"{MANAGEMENT}.ManagementAPIsService", OF_MANAGEMENT, ""),
        (f"{OPEN}.GRPCInferenceService", OF_OIP, "ModelStreamInfer"),
        ("inference.GRPCInferenceService", OF_OIP, "ModelStreamInfer"),
        ("grpc.health.v1.Health", "Check List Watch", "Watch"),
    ],
)
def test_a_service_has_the_calls_that_its_clients_know(service: str, calls: str, answers_in_pieces: str) -> None:
    methods = messages.service(service).methods

    assert [method.name for method in methods] == calls.split()
    assert [method.name for method in methods if method.server_streaming] == answers_in_pieces.split()
    streams = {method.name for method in methods if method.client_streaming}
    assert streams == {"StreamPredictions2", "ModelStreamInfer"} & set(calls.split())


@pytest.mark.parametrize(
    ("name", "fields", "wire"),
    [
        pytest.param(
            f"{INFERENCE}.PredictionsRequest",
            {"model_name": "m", "input": {"data": b"\x00\xff"}, "sequence_id": ""},
            b'\x0a\x01m\x1a\x0a\x0a\x04data\x12\x02\x00\xff"\x00',
            id="a prediction, its sequence empty but present",
        ),
        pytest.param(
            f"{INFERENCE}.PredictionResponse",
            {"prediction": b"p", "status": {"code": 13, "message": "no"}},
            b"\x0a\x01p\x1a\x06\x08\x0d\x12\x02no",
            id="an answer with a status",
        ),
        pytest.param(
            f"{MANAGEMENT}.RegisterModelRequest",
            {"url": "m.mar", "synchronous": True, "startup_timeout": 300},
            b"\x40\x01J\x05m.marX\xac\x02",
            id="a registration",
        ),
        pytest.param(
            f"{OPEN}.ModelInferRequest",
            {
                "inputs": [{"name": "x", "shape": [2, 1], "contents": {"fp32_contents": [1.0]}}],
                "parameters": {"k": {"bool_param": False}},
                "raw_input_contents": [b"", b"r"],
            },
            b'"\x07\x0a\x01k\x12\x02\x08\x00*\x0f\x0a\x01x\x1a\x02\x02\x01*\x06\x32\x04\x00\x00\x80?:\x00:\x01r',
            id="tensors, packed and raw",
        ),
        pytest.param(
            "inference.ModelInferRequest",
            {"parameters": {"k": {"uint64_param": 2}}, "outputs": [{"name": "y"}]},
            b'"\x07\x0a\x01k\x12\x02\x28\x022\x03\x0a\x01y',
            id="the standard package has unsigned parameters",
        ),
        pytest.param("grpc.health.v1.HealthCheckResponse", {"status": "NOT_SERVING"}, b"\x08\x02", id="health"),
    ],
)
def test_a_message_has_the_bytes_of_the_protocol(name: str, fields: dict[str, object], wire: bytes) -> None:
    kind = messages.message_class(name)

    assert kind(**fields).SerializeToString(deterministic=True) == wire
    assert kind.FromString(wire) == kind(**fields)


def test_the_names_stay_free_for_the_stubs_of_clients() -> None:
    messages.pool()

    with pytest.raises(KeyError):
        descriptor_pool.Default().FindFileByName("inference.proto")


@pytest.mark.slow
def test_the_daemon_starts_without_protobuf() -> None:
    program = "import sys, tsctl.daemon.server.daemon, tsctl.daemon.extensions.grpc.codes; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert {name for name in done.stdout.split() if name.startswith(("google.protobuf", "grpc"))} == set()
