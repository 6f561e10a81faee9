"""The models that a container holds: their store, and the archives in the folder of SageMaker."""

from collections.abc import Iterator
from pathlib import Path

from daemon.marfile import MANIFEST
from tsctl.errors import CliError


def store_of(named: Path, mounted: Path) -> tuple[Path, str]:
    """Return the model store, and a note if it is not the named one.

    KServe mounts what its storage URI names: usually a folder with `model-store` in it, but the archives themselves if
    the URI names their folder.

    Args:
        mounted: the folder where the models are mounted.
    """
    if not named.exists() and named.is_relative_to(mounted) and any(_archives(mounted)):
        return mounted, f"note: there is no `{named}`: the model store is `{mounted}`, which holds archives"
    return named, ""


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
