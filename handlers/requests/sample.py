"""The archive's own request, which `model-config.yaml` names: `warmup: FILE`, or its `file` and `contentType`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from handlers.sdk.errors import HandlerError


class SampleRequest(NamedTuple):
    """A request from the archive."""

    name: str
    body: bytes
    content_type: str


def sample_of(model_dir: Path, config: Mapping[str, Any]) -> SampleRequest | None:
    """Read the sample that `model-config.yaml` names; return None if no sample is named.

    Raises:
        HandlerError: `warmup` names no file, or a file that the archive lacks.
    """
    wanted = config.get("warmup")
    if not wanted:
        return None
    options = {"file": wanted} if isinstance(wanted, str) else wanted
    if not isinstance(options, dict) or not isinstance(options.get("file"), str):
        raise HandlerError(f"model-config.yaml: `warmup` is {wanted!r}; expected the name of a file of the archive")
    file = model_dir / Path(options["file"]).name
    if not file.is_file():
        raise HandlerError(f"model-config.yaml: `warmup` names `{options['file']}`, and the archive does not hold it")
    return SampleRequest(file.name, file.read_bytes(), str(options.get("contentType") or ""))
