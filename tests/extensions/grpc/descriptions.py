"""Compile the .proto files: `python -m tests.lab grpc-descriptions` writes what the daemon reads of them."""

import tempfile
from pathlib import Path

from grpc_tools import _proto, protoc

from tsctl.daemon.extensions.grpc.protos.messages import DESCRIPTIONS

PROTOS = DESCRIPTIONS.parent
# The name under which others import the file → its file in `protos`.
FILES = {
    "google/rpc/status.proto": "status.proto",
    "inference.proto": "torchserve_inference.proto",
    "management.proto": "torchserve_management.proto",
    "grpc_health/v1/health.proto": "health.proto",
    "grpc_service.proto": "open_inference.proto",
    "open_inference_grpc.proto": "open_inference.proto",
    "grpc/reflection/v1/reflection.proto": "reflection.proto",
    "grpc/reflection/v1alpha/reflection.proto": "reflection.proto",
}
# The file's own package → the one that it has under this name. TorchServe's package of a file that standard clients
# know under another: the fields that the protocol has gained since TorchServe's copy change nothing for its clients,
# as protobuf skips unknown ones.
PACKAGES = {
    "open_inference_grpc.proto": ("inference", "org.pytorch.serve.grpc.openinference"),
    "grpc/reflection/v1alpha/reflection.proto": ("grpc.reflection.v1", "grpc.reflection.v1alpha"),
}


def compiled() -> bytes:
    """Return the descriptions of all files, each after those that it imports: a serialized FileDescriptorSet.

    Raises:
        ValueError: protoc rejects a file; its reasons are on stderr.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, file in FILES.items():
            text = (PROTOS / file).read_text(encoding="utf-8")
            if name in PACKAGES:
                own, here = PACKAGES[name]
                text = text.replace(f"package {own};", f"package {here};")
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_text(text, encoding="utf-8")
        out = Path(folder) / "descriptions.pb"
        known = _proto.__path__[0]
        command = ["protoc", f"-I{folder}", f"-I{known}", f"--descriptor_set_out={out}", *FILES]
        if protoc.main(command):
            raise ValueError("protoc rejects a .proto file")
        return out.read_bytes()


if __name__ == "__main__":
    DESCRIPTIONS.write_bytes(compiled())
