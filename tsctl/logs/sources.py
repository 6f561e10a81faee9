"""The log files of a state directory, and the lines of one, each with its time."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tsctl.daemon import paths
from tsctl.logs.lines import moment_of, parse, stamp_of, text_of

_MODEL_LOG = re.compile(r"(.+)@([^@]+)\.log")


class LogSource(NamedTuple):
    """A log file; `model` and `version` are those of a model's log."""

    path: Path
    log: Literal["daemon", "access", "model"]
    model: str = ""
    version: str = ""


class Line(NamedTuple):
    """A line of a log.

    Attributes:
        time: seconds since the epoch; of a line without one, that of the line before. Never falls within a source.
        text: as it is in the file.
        fields: None for a line without a time.
    """

    time: float
    source: LogSource
    text: str
    fields: Mapping[str, Any] | None

    @property
    def continues(self) -> bool:
        """Whether the line belongs to the one before it, as those of a traceback."""
        return self.fields is None

    def shown(self, *, named: bool) -> str:
        """Return the line for people; `named` names the model of a worker's line."""
        source, fields = self.source, self.fields
        if fields is None:
            return self.text
        if source.log != "model":
            return text_of(fields) if self.text.startswith("{") else self.text
        about = {"model": source.model, "version": source.version}
        return text_of({name: value for name, value in fields.items() if name not in about} | (about if named else {}))

    def document(self) -> dict[str, Any]:
        """Return the line as a program reads it, in the fields of the JSON format."""
        about = {"model": self.source.model, "version": self.source.version} if self.source.model else {}
        fields = {"level": "info", "log": self.source.log, "text": self.text} if self.fields is None else self.fields
        return {"time": stamp_of(self.time)} | {name: fields[name] for name in fields if name != "time"} | about


def model_source(state_dir: Path, name: str, version: str) -> LogSource:
    return LogSource(paths.model_log(state_dir, name, version), "model", name, version)


def model_sources(state_dir: Path) -> list[LogSource]:
    found = sorted(paths.logs_dir(state_dir).glob("*@*.log"))
    return [LogSource(path, "model", *named.groups()) for path in found if (named := _MODEL_LOG.fullmatch(path.name))]


def timed(texts: Iterable[str], source: LogSource, otherwise: float, after: float | None = None) -> Iterator[Line]:
    """Yield lines with their times.

    Args:
        otherwise: the time of lines without one, where no line with one is there.
        after: the time of the line before these; None if there is none.
    """
    waiting: list[str] = []
    for text in texts:
        fields = parse(text, source.log)
        if fields is None and after is None:
            waiting.append(text)
            continue
        if fields is not None:
            moment = moment_of(fields["time"])
            after = moment if after is None else max(after, moment)
        assert after is not None
        for each in waiting:
            yield Line(after, source, each, None)
        waiting.clear()
        yield Line(after, source, text, fields)
    for each in waiting:
        yield Line(otherwise, source, each, None)
