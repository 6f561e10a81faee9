"""The lines of ts_metrics.log and model_metrics.log, and those that workers print.

in a file         Name.Unit:value|#Dimension:value,…|#hostname:host,requestID:id,timestamp:seconds
from a worker     [METRICS]Name.Unit:value|#Dimension:value,…|#type:GAUGE|#hostname:host,seconds,id
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

MARK = "[METRICS]"
_PRINTED = re.compile(
    r"(?:INFO > )?\[METRICS\]\s*([\w\s]+)\.([\w\s]+):([-+0-9.e]+)"
    r"\|#([^|]*)(?:\|#type:[^|,]+)?\|#hostname:([^,]+),[^,]+(?:,(.*))?"
)


class PrintedMetric(NamedTuple):
    """A measurement as a worker has printed it; `dimensions` as text, `request_ids` empty if there are none."""

    name: str
    unit: str
    value: float
    dimensions: str
    hostname: str
    request_ids: str


def parse_printed(line: str) -> PrintedMetric | None:
    """Parse a line of a worker's output; None for any other line."""
    found = _PRINTED.fullmatch(line)
    if found is None:
        return None
    name, unit, value, dimensions, hostname, ids = found.groups()
    try:
        return PrintedMetric(name, unit, float(value), dimensions, hostname, ids or "")
    except ValueError:
        return None


def metric_line(
    name: str, unit: str, value: float, dimensions: str, hostname: str, moment: float, request_ids: str | None = None
) -> str:
    """Return the line of a value, without the time at its beginning.

    Args:
        moment: in seconds since the epoch.
        request_ids: of a model's metric, as text; `null` in the line if empty. None for the server's.
    """
    requests = "" if request_ids is None else f",requestID:{request_ids or 'null'}"
    return f"{name}.{unit}:{_number(value)}|#{dimensions}|#hostname:{hostname}{requests},timestamp:{int(moment)}"


def _number(value: float) -> str:
    """Return a number with a decimal point, and without an exponent, which scripts do not expect."""
    text = repr(float(value))
    return f"{value:.9f}" if "e-" in text else f"{value:.1f}" if "e" in text else text


def dimensions_text(labels: Mapping[str, str]) -> str:
    """Return the dimensions as a line has them, without the last one, the name of the host."""
    return ",".join([f"{name}:{value}" for name, value in labels.items()][:-1])
