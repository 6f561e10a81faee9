"""The archive's own requests, which `model-config.yaml` names.

warmup: cat.jpg               a file of the archive
warmup: [cat.jpg, dog.jpg]    several
warmup: samples               all files of a folder of the archive, in the order of their names
warmup:
  file: …                     one of these
  contentType: image/jpeg     of all of them
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tsctl.handlers.names import sample_files
from tsctl.handlers.sdk.errors import HandlerError


class SampleRequest(NamedTuple):
    """A request from the archive."""

    name: str
    body: bytes
    content_type: str


def samples_of(model_dir: Path, config: Mapping[str, Any]) -> list[SampleRequest]:
    """Read the samples that `model-config.yaml` names; return none if no sample is named.

    Raises:
        HandlerError: `warmup` names no file, or a file that the archive lacks.
    """
    return list(_read(model_dir, config))


def _read(model_dir: Path, config: Mapping[str, Any]) -> Iterator[SampleRequest]:
    wanted = config.get("warmup")
    if not wanted:
        return
    options = wanted if isinstance(wanted, dict) else {"file": wanted}
    content_type = str(options.get("contentType") or "")
    files = sample_files(model_dir, options.get("file"))
    if not files:
        what = "the name of a file or folder of the archive, or a list of names"
        raise HandlerError(f"model-config.yaml: `warmup` is {wanted!r}; expected {what}")
    for file in files:
        if not file.is_file():
            raise HandlerError(f"model-config.yaml: `warmup` names `{file.name}`, and the archive does not hold it")
    for file in files:
        yield SampleRequest(file.name, file.read_bytes(), content_type)


def sample_of(model_dir: Path, config: Mapping[str, Any]) -> SampleRequest | None:
    """Read the first sample that `model-config.yaml` names; return None if no sample is named.

    Raises:
        HandlerError: as `samples_of`.
    """
    return next(_read(model_dir, config), None)
