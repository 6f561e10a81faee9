"""The host that started the container, seen from its environment; each host has a contract about ports and places.

KServe       sets PROTOCOL_VERSION for runtimes of the server type `torchserve`; HTTP is asked on 8080, gRPC on 8081
             (Open Inference Protocol) and 7070 (TorchServe's), metrics on 8082; models are in /mnt/models
SageMaker    starts the image with the word `serve` and mounts /opt/ml/model; HTTP is asked on SAGEMAKER_BIND_TO_PORT
plain        Docker, a Deployment of one's own, Helm: config.properties decides
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from pathlib import Path

PROTOCOL = "PROTOCOL_VERSION"
PROTOCOLS = ("v1", "v2", "grpc-v2")
MOUNTED = Path("/mnt/models")  # where KServe mounts the models
SAGEMAKER_MODEL = Path("/opt/ml/model")
ABSENT = ("", "<no value>")  # KServe fills a placeholder whose label does not exist with the latter


class Host(Enum):
    """The contract under which the container runs."""

    PLAIN = auto()
    KSERVE = auto()
    SAGEMAKER = auto()


def host_of(environment: Mapping[str, str], serve: bool, is_dir: Callable[[Path], bool] = Path.is_dir) -> Host:
    """Return the host.

    Args:
        serve: whether the container's word was `serve`.
    """
    if environment.get(PROTOCOL, "") in PROTOCOLS:
        return Host.KSERVE
    if serve and is_dir(SAGEMAKER_MODEL):
        return Host.SAGEMAKER
    return Host.PLAIN


def without_absent(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without `TS_…` variables that a placeholder left without a value."""
    return {
        name: value for name, value in environment.items() if not (name.startswith("TS_") and value.strip() in ABSENT)
    }
