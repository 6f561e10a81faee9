"""The lines of all logs: as text, or one JSON object a line.

    text   2026-01-31T12:00:00.123+01:00 INFO    listening on …                        daemon
           2026-01-31T12:00:00.123+01:00 4711 stdout loading weights                   a worker's output
           2026-01-31T12:00:00.123+01:00 127.0.0.1:5000 "POST /predictions/m" 200 …    access (http/access_log.py)
    JSON   {"time": …, "level": …, "log": "daemon" | "model" | "access", …, "text": …}

Times are local, in ISO 8601 with milliseconds and offset. Where stderr is systemd's journal, its lines begin with their
priority (`sd-daemon(3)`), which the journal takes away again.
"""

import json
import logging
import os
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

# A URL as it is, or within another: scheme, user, host and path, and query.
_URL = re.compile(
    r"(https?(?::|%3A)(?:/|%2F){2})(?:[^\s/?&]*?(?:@|%40))?((?:[^\s?&%]|%(?!3F))*)((?:\?|%3F)\S*)?", re.IGNORECASE
)
_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}
_encode = msgspec.json.Encoder().encode


def without_secrets(text: str) -> str:
    """Remove secrets from the URLs in a text: name and password, and the query, which holds signatures."""
    if "http" not in text:
        return text
    return _URL.sub(lambda url: f"{url[1]}{url[2]}{'?…' if url[3] else ''}", text)


def stamp_of(moment: float) -> str:
    """Return a moment, in seconds since the epoch, as local time: `2026-01-31T12:00:00.123+01:00`."""
    return datetime.fromtimestamp(moment).astimezone().isoformat(timespec="milliseconds")


def json_of(value: Mapping[str, Any] | str) -> str:
    """Return one line of JSON; text that is no Unicode, such as a file's name, is escaped."""
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value)


def is_journal(descriptor: int, environment: Mapping[str, str]) -> bool:
    """Return whether a descriptor is the stream to systemd's journal that JOURNAL_STREAM names, as DEVICE:INODE."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return False
    return environment.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


class DaemonFormat(logging.Formatter):
    """The daemon's own lines; `fields` of a record (`extra`) are further fields of its JSON."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        text = without_secrets(text)
        stamp, level = stamp_of(record.created), record.levelname
        if not self._as_json:
            return f"{stamp} {level:7} {text}"
        fields = {"time": stamp, "level": level.lower(), "log": "daemon", "logger": record.name, "text": text}
        return json_of(fields | getattr(record, "fields", {}))


class JournalFormat(logging.Formatter):
    """The lines of another format, each with its priority for systemd's journal."""

    def __init__(self, lines: logging.Formatter) -> None:
        super().__init__()
        self._lines = lines

    def format(self, record: logging.LogRecord) -> str:
        priority = f"<{_PRIORITIES.get(record.levelno, 6)}>"
        return priority + self._lines.format(record).replace("\n", f"\n{priority}")


class OutputFormat:
    """The lines of the output of one model version's workers."""

    def __init__(self, model: str, version: str, *, as_json: bool) -> None:
        self._model = model
        self._version = version
        self._as_json = as_json

    def lines(self, text: str, pid: int, stream: str, moment: float, *, named: bool = False) -> str:
        """Return the lines of the log for lines that a worker has written.

        Args:
            text: one or more lines, without the last line feed.
            stream: `stdout`, `stderr`, or `daemon` for a remark about the output.
            moment: when they came, in seconds since the epoch.
            named: name the model, among the lines of others.
        """
        stamp = stamp_of(moment)
        if not self._as_json:
            about = f"{self._model}/{self._version} " if named else ""
            prefix = f"{stamp} {about}{pid} {stream} "
            return prefix + text.replace("\n", f"\n{prefix}")
        fields = {
            "time": stamp, "level": "warning" if stream == "daemon" else "info", "log": "model", "model": self._model,
            "version": self._version, "pid": pid, "stream": stream, "text": "",
        }  # fmt: skip
        found = []
        for line in text.split("\n"):
            fields["text"] = line
            found.append(json_of(fields))
        return "\n".join(found)
