"""One line of a log: read in each format that a daemon writes (daemon/core/logs.py), and written as text."""

import contextlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

_STAMP = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d)"
_DAEMON = re.compile(rf"{_STAMP} (DEBUG|INFO|WARNING|ERROR|CRITICAL) +(.*)", re.DOTALL)
_OUTPUT = re.compile(rf"{_STAMP} (?:(\S+)/(\S+) )?(\d{{1,10}}) (stdout|stderr|daemon) (.*)", re.DOTALL)
_ACCESS = re.compile(rf'{_STAMP} (.*?) "(\S+) (.*)" (\d{{1,3}}) (\d{{1,12}}\.\d)ms (\S+)')


def moment_of(stamp: str) -> float:
    """Return the seconds since the epoch of a stamp.

    Raises:
        ValueError: the text is no time.
    """
    return datetime.fromisoformat(stamp).timestamp()


def stamp_of(moment: float) -> str:
    """Return a moment, in seconds since the epoch, as local time: `2026-01-31T12:00:00.123+01:00`."""
    return datetime.fromtimestamp(moment).astimezone().isoformat(timespec="milliseconds")


def parse(line: str, log: str) -> dict[str, Any] | None:
    """Return the fields of a line, as the JSON format has them; None for one without a time, which continues another.

    Args:
        line: without its line feed.
        log: `daemon`, `access` or `model`.
    """
    fields = _parsed_json(line) if line.startswith("{") else _parsed_text(line, log)
    with contextlib.suppress(ValueError):
        if fields is not None:
            moment_of(fields["time"])
            return fields
    return None


def _parsed_text(line: str, log: str) -> dict[str, Any] | None:
    if log == "model" and (found := _OUTPUT.fullmatch(line)):
        stamp, model, version, pid, stream, text = found.groups()
        level = "warning" if stream == "daemon" else "info"
        about = {"model": model, "version": version} if model else {}
        return {"time": stamp, "level": level, "log": log, **about, "pid": int(pid), "stream": stream, "text": text}
    if log == "access" and (found := _ACCESS.fullmatch(line)):
        stamp, client, method, path, status, ms, request = found.groups()
        return {
            "time": stamp, "level": "info", "log": log, "client": client, "method": method, "path": path,
            "status": int(status), "ms": float(ms), "request": request,
        }  # fmt: skip
    if found := _DAEMON.fullmatch(line):  # in any log: a remark about the file itself
        stamp, level, text = found.groups()
        return {"time": stamp, "level": level.lower(), "log": log, "text": text}
    return None


def text_of(fields: Mapping[str, Any]) -> str:
    """Return a line as text; an output's line names its model, if the fields do."""
    stamp = fields["time"]
    if "request" in fields:
        return '{} {} "{} {}" {} {:.1f}ms {}'.format(
            stamp, *(fields[each] for each in ("client", "method", "path", "status", "ms", "request"))
        )
    if "stream" in fields:
        about = f"{fields['model']}/{fields['version']} " if "model" in fields else ""
        return f"{stamp} {about}{fields['pid']} {fields['stream']} {fields['text']}"
    return f"{stamp} {fields['level'].upper():7} {fields['text']}"


def printed(line: str) -> str:
    """Return what a worker has printed, of a line of a model's log."""
    fields = parse(line, "model")
    return line if fields is None else str(fields["text"])


def _parsed_json(line: str) -> dict[str, Any] | None:
    with contextlib.suppress(ValueError):
        fields = json.loads(line)
        if isinstance(fields, dict) and {"time", "level", "log"} <= fields.keys():
            return fields | {"time": str(fields["time"])}
    return None
