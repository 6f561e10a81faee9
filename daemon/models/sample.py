"""A request that can be sent again, to measure a model: the latest that was kept, or the archive's warm-up sample.

Bodies are kept only where somebody asks for it (`recordInput`), only in memory, and only the latest: of a
prediction that was answered with 200, with its content type and no other header. They are told on the
control socket only.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

MOST_BYTES = 8 * 1024 * 1024  # a photograph; what is larger is not kept
RECORDED = "recorded"
WARMUP = "warmup"


class Sample(NamedTuple):
    """A body and its content type, empty for none; `origin` is `RECORDED` or `WARMUP`."""

    body: bytes
    content_type: str
    origin: str


def warmup_sample(directory: Path, document: Mapping[str, Any]) -> Sample | None:
    """Read what `warmup` in `model-config.yaml` names, as handlers.warmup does; None if that is nothing. Blocks."""
    wanted = document.get("warmup")
    options = {"file": wanted} if isinstance(wanted, str) else wanted
    if not isinstance(options, dict) or not isinstance(options.get("file"), str):
        return None
    try:
        body = (directory / Path(options["file"]).name).read_bytes()
    except (OSError, ValueError):  # the worker says so, and does not start
        return None
    return Sample(body, str(options.get("contentType") or ""), WARMUP)
