"""The models that a container holds: their store, and the archives in the folder of SageMaker."""

from collections.abc import Iterator
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
