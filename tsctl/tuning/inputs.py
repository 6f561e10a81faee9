"""The input of a measurement: a request to repeat, and the daemon's settings that its workers depend on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tsctl.client import DaemonClient, checked, content_type_of

_SURROUNDINGS = ("envelope", "decode_input", "limit_image_pixels", "hide_environment", "metrics_config")


def sample_input(
    client: DaemonClient, path: str, sample: Path | None, content_type: str | None
) -> tuple[bytes, str, str]:
    """Return the request to measure with: body, content type, source.

    Raises:
        CliError: no file is named, and the daemon has no sample of the model.
    """
    if sample is not None:
        return sample.read_bytes(), content_type_of(sample) if content_type is None else content_type, str(sample)
    answer = client.request("GET", f"/tsctl/input/{path}")
    if answer.status >= 400:
        checked(answer.status, json.loads(answer.body))
    return answer.body, answer.content_type if content_type is None else content_type, "the daemon's input"


def surroundings(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the settings of the daemon that are passed to its workers, from `/tsctl/config` by their names."""
    return {name: _said(settings[name]["value"]) for name in _SURROUNDINGS if settings[name]["origin"] != "default"}


def _said(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
