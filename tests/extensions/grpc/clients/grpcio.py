"""Calls without stubs, by reflection as grpcurl makes them, and the calls of Kubernetes' probes: a program of its own.

python grpcio.py HTTP_HOST:PORT GRPC_HOST:PORT

The model `tensors` is served (test_served_clients.py).
"""

import sys

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

MODEL = "grpcio-fp32"
SERVICES = (
    "inference.GRPCInferenceService", "org.pytorch.serve.grpc.openinference.GRPCInferenceService",
    "org.pytorch.serve.grpc.inference.InferenceAPIsService", "grpc.health.v1.Health",
    "grpc.reflection.v1alpha.ServerReflection",
)  # fmt: skip


class Reflected:
    """The services of a server, as it describes them."""

    def __init__(self, channel):
        self._channel = channel
        self._database = ProtoReflectionDescriptorDatabase(channel)
        self._pool = DescriptorPool(self._database)

    def services(self):
        return set(self._database.get_services())

    def call(self, service, method, **fields):
        found = self._pool.FindServiceByName(service).FindMethodByName(method)
        request, answer = GetMessageClass(found.input_type), GetMessageClass(found.output_type)
        call = self._channel.unary_unary(f"/{service}/{method}", request.SerializeToString, answer.FromString)
        return call(request(**fields))


def check_reflection(channel):
    reflected = Reflected(channel)
    assert reflected.services() >= set(SERVICES), reflected.services()
    for service in SERVICES[:2]:
        assert reflected.call(service, "ServerLive").live
        assert reflected.call(service, "ModelReady", name=MODEL).ready
        contents = {"fp32_contents": [1.0, 2.0]}
        tensor = {"name": "x", "datatype": "FP32", "shape": [2], "contents": contents}
        answer = reflected.call(service, "ModelInfer", model_name=MODEL, inputs=[tensor])
        outputs = {output.name: output for output in answer.outputs}
        assert list(outputs["x"].contents.fp32_contents) == [1.0, 2.0]
    said = reflected.call(SERVICES[2], "Ping").health
    assert '"Healthy"' in said, said


def refusal(call, request):
    try:
        call(request)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def check_probes(channel):
    health = health_pb2_grpc.HealthStub(channel)
    for service in ("", MODEL, *SERVICES[:3]):  # a probe names a service, or none
        status = health.Check(health_pb2.HealthCheckRequest(service=service)).status
        assert status == health_pb2.HealthCheckResponse.SERVING, service
    assert refusal(health.Check, health_pb2.HealthCheckRequest(service="nothing")) is grpc.StatusCode.NOT_FOUND
    watched = health.Watch(health_pb2.HealthCheckRequest(service=MODEL))
    assert next(watched).status == health_pb2.HealthCheckResponse.SERVING
    watched.cancel()


if __name__ == "__main__":
    with grpc.insecure_channel(sys.argv[2]) as opened:
        check_reflection(opened)
        check_probes(opened)
    print("every call did as it should")
