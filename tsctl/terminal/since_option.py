"""Times as people type them: a duration back from now, or a date, with or without a time."""

import datetime
import math
import re
from typing import Any

import click

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|m|h|d|w)")


def parse_since(text: str, now: float) -> float:
    """Return seconds since the epoch; a date or time without an offset is local.

    Args:
        text: such as `90s`, `10m`, `2h`, `3d`, `2026-01-31`, `2026-01-31 12:00`, `2026-01-31T12:00:00+01:00`.
        now: seconds since the epoch.

    Raises:
        ValueError: the text is neither.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is not None:
        return now - float(found[1]) * _UNITS[found[2]]
    seconds = datetime.datetime.fromisoformat(text.strip()).timestamp()
    if not math.isfinite(seconds):
        raise ValueError(text)
    return seconds


class Since(click.ParamType[float]):
    """An option's value, as seconds since the epoch."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return parse_since(str(value), datetime.datetime.now().timestamp())
        except (ValueError, OverflowError, OSError):
            self.fail(
                f"`{value}`; expected a duration such as 10m or 2h, or a time such as 2026-01-31T12:00", param, ctx
            )
