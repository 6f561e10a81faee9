"""Predictions, health, reflection and management over gRPC, at addresses of its own.

torchserve_keys          TorchServe's keys of config.properties for gRPC
servers                  a daemon's addresses, and what is served there
server                   one server: each call from its metadata to its answer, and a loop that ends
heads, codes             a call's metadata, and its status
torchserve, prediction   TorchServe's predictions
oip, tensor_contents     the Open Inference Protocol; the contents of its tensors
health                   gRPC's own services
protos                   the .proto files, and messages of them
management               management, and the model repository, by HTTP's routes
waiting                  calls that wait: for their messages, their models, their turns, and to be written

Only protos/messages.py imports protobuf, and only `load_grpc` of server.py imports grpc: a daemon without addresses
of gRPC starts without both.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tsctl.daemon.declarations import FileKey
from tsctl.daemon.extension import Extension, Kernel, Service
from tsctl.daemon.setting_values import Setting, grouped, parse_names


def _asks_for_tls(value: str) -> bool:
    return value.lower() == "true"


class GrpcExtension(Extension):
    name = "grpc"
    settings = grouped(
        "Addresses",
        Setting(
            "grpc_address", None, parse_names, "ADDRESSES",
            "Comma-separated addresses of gRPC predictions and health checks, HOST:PORT [default: none].",
            everyday=True,
        ),
        Setting(
            "grpc_management_address", None, parse_names, "ADDRESSES",
            "Comma-separated addresses of management over gRPC, HOST:PORT; needs a management token [default: none].",
            manages="gRPC management address",
        ),
    )  # fmt: skip
    file_keys = (
        FileKey("grpc_inference_address", read=True),
        FileKey("grpc_inference_port", read=True),
        FileKey("grpc_management_address", read=True),
        FileKey("grpc_management_port", read=True),
        FileKey("grpc_inference_max_connection_age_grace_ms"),
        FileKey("grpc_inference_max_connection_age_ms"),
        FileKey("grpc_management_max_connection_age_grace_ms"),
        FileKey("grpc_management_max_connection_age_ms"),
        FileKey(
            "enable_grpc_ssl", stops=_asks_for_tls,
            why="TLS comes from `certificate_file` and `private_key_file`, in PEM; remove the key",
        ),
    )  # fmt: skip

    def configure(
        self, values: dict[str, Any], keys: Mapping[str, str], environment: Mapping[str, str]
    ) -> Sequence[str]:
        if not keys:
            return ()
        from tsctl.daemon.config.config import has_management_token
        from tsctl.daemon.extensions.grpc.torchserve_keys import read_keys

        named, notes = read_keys(keys, values, token=has_management_token(values, environment))
        values |= named
        return notes

    def install(self, kernel: Kernel) -> Service:
        if not kernel.config.grpc_address and not kernel.config.grpc_management_address:
            return _Off()
        from tsctl.daemon.extensions.grpc.servers import GrpcService
        from tsctl.daemon.http.bounds.trimming import keep_memory

        keep_memory()  # no extension has started a thread
        return GrpcService(kernel)


class _Off(Service):
    def document(self) -> Mapping[str, Any]:
        return {"grpcAddresses": [], "grpcManagementAddresses": []}
