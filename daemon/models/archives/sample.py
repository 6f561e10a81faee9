"""A request that can be sent again, to measure a model; and that of the archive, its warm-up sample."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tsctl.handlers.names import sample_files

WARMUP = "warmup"


class Sample(NamedTuple):
    """A body and its content type, empty for none; `origin` is `WARMUP`, or says who keeps it."""

    body: bytes
    content_type: str
    origin: str


def warmup_sample(directory: Path, document: Mapping[str, Any]) -> Sample | None:
    """Read the first file that `warmup` in `model-config.yaml` names, as tsctl.handlers.runtime.warmup does. Blocks.

    Returns:
        None if no file is named, or it cannot be read.
    """
    wanted = document.get("warmup")
    options = wanted if isinstance(wanted, dict) else {"file": wanted}
    try:
        files = sample_files(directory, options.get("file"))
        if not files:
            return None
        body = files[0].read_bytes()
    except (OSError, ValueError):  # the worker reports the error, and does not start
        return None
    return Sample(body, str(options.get("contentType") or ""), WARMUP)
