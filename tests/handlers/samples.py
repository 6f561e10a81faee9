"""Common test objects: a context, a row, files of an archive."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.handlers.device import GPU_ID
from tsctl.handlers import wire
from tsctl.handlers.sdk.context import Context


def context_of(
    model_dir: Path, model: Mapping[str, Any] | None = None, config: Mapping[str, Any] | None = None
) -> Context:
    """Make a worker's context on the tests' device; `model` is the manifest's entry of that name."""
    manifest = {"model": dict(model or {})}
    return Context("net", str(model_dir), manifest, batch_size=8, gpu=GPU_ID, model_yaml_config=config)


def row(value: bytes, content_type: str = "", *, request_id: str = "r0", name: str = "body") -> wire.Row:
    """Make the row of a request with one parameter."""
    return wire.Row(request_id, [], [(name, content_type, value)])


def write(path: Path, source: str) -> Path:
    """Write a Python file; the source may be indented."""
    path.write_text(dedent(source))
    return path
