"""The host that started the container, seen from its environment; each host has a contract about ports and places.

KServe       sets PROTOCOL_VERSION for runtimes of the server type `torchserve`; HTTP is asked on 8080, gRPC on 8081
             (Open Inference Protocol) and 7070 (TorchServe's), metrics on 8082; models are in /mnt/models
SageMaker    starts the image with the word `serve` and mounts /opt/ml/model; HTTP is asked on SAGEMAKER_BIND_TO_PORT
plain        Docker, a Deployment of one's own, Helm: config.properties decides
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from pathlib import Path

from tsctl.daemon.marfile import MANIFEST
from tsctl.errors import CliError


def mounted_models(named: Path, mounted: Path) -> str:
    """Return the archives of the folder where models are mounted, if it has them in place of the named store.

    KServe mounts the folder of a storage URI: usually one with `model-store` in it, but one of archives if the URI
    names that. Empty if the named store exists, or if there are no archives either.

    Args:
        mounted: the folder where the models are mounted.
    """
    if named.exists() or not named.is_relative_to(mounted):
        return ""
    return ",".join(sorted(_archives(mounted)))


def sagemaker_models(folder: Path) -> str:
    """Return the models in SageMaker's folder: the folder itself if it is an unpacked archive, else the archives in it.

    Raises:
        CliError: there is no archive.
    """
    if (folder / MANIFEST).is_file():
        return str(folder)
    found = sorted(_archives(folder))
    if not found:
        raise CliError(
            f"no model archive in `{folder}`",
            "put a .mar of `tsctl archive`, or the files of one with `--archive-format no-archive`, into model.tar.gz",
        )
    return ",".join(found)


def _archives(folder: Path) -> Iterator[str]:
    """Yield the names of archives; another folder, such as `code`, is none."""
    if folder.is_dir():
        for path in folder.iterdir():
            if path.suffix == ".mar" or (path / MANIFEST).is_file():
                yield path.name


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
