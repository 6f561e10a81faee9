"""A request that can be sent again, to measure a model: the latest recorded one, or the archive's warm-up sample.

Bodies are recorded only if `recordInput` is set, only in memory, and only the latest one that was answered with 200,
with its content type and no other header. Only the control socket returns them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from tsctl.daemon.core.job import Param
from tsctl.handlers.names import sample_files

MOST_BYTES = 8 * 1024 * 1024  # a photograph; larger bodies are not recorded
RECORDED = "recorded"
WARMUP = "warmup"


class Sample(NamedTuple):
    """A body and its content type, empty for none; `origin` is `RECORDED` or `WARMUP`."""

    body: bytes
    content_type: str
    origin: str


def sample_of(params: Sequence[Param]) -> Sample | None:
    """Return the request that repeats these parameters: a body alone as it is, others as a form.

    Returns:
        None if there are no parameters, or the name of one cannot stand in a form.
    """
    if len(params) == 1 and params[0].name == "body":
        return Sample(bytes(params[0].value), params[0].content_type, RECORDED)
    if not params or not all(each.name.isprintable() and not set(each.name) & set('"\\') for each in params):
        return None
    boundary = uuid4().hex
    lines: list[bytes] = []
    for name, content_type, value in params:
        typed = f"\r\nContent-Type: {content_type}" if content_type else ""
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{typed}\r\n\r\n'
        lines += [head.encode(), bytes(value), b"\r\n"]
    body = b"".join([*lines, f"--{boundary}--\r\n".encode()])
    return Sample(body, f"multipart/form-data; boundary={boundary}", RECORDED)


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
