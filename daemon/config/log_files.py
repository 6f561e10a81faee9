"""TorchServe's log files: which ones the operator wants, where, and with which lines.

LOG_LOCATION        ts_log.log, model_log.log, access_log.log
METRICS_LOCATION    ts_metrics.log, model_metrics.log
--log-config        those that log4j's loggers of TorchServe write to, instead of both
metrics_mode        `log` and `legacy` want the metrics' files in any case
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from daemon.config.log4j import LOGGERS, Appender, Log4j, expanded, read_log4j
from daemon.core.layouts.pattern import BARE, TORCHSERVE, Layout, UnknownConversion

PATTERNS = {
    "access_log": BARE, "ts_log": TORCHSERVE, "model_log": TORCHSERVE, "ts_metrics": BARE, "model_metrics": BARE,
}  # fmt: skip
METRICS = ("ts_metrics", "model_metrics")


class LogTarget(NamedTuple):
    """A file, and the pattern of its lines."""

    path: Path
    pattern: str


def log_targets(
    log_location: Path | None, metrics_location: Path | None, mode: str | None, otherwise: Path
) -> dict[str, LogTarget]:
    """Return the files in these directories; metrics that a mode sends to files are in `otherwise` if in none."""
    if mode in ("log", "legacy"):
        metrics_location = metrics_location or log_location or otherwise
    places = {name: metrics_location if name in METRICS else log_location for name in PATTERNS}
    return {
        name: LogTarget(place / f"{name}.log", PATTERNS[name]) for name, place in places.items() if place is not None
    }


def log4j_targets(path: Path, where: str, environment: Mapping[str, str]) -> tuple[dict[str, LogTarget], list[str]]:
    """Return the files that a log4j configuration names, and notes about what of it is not used.

    Raises:
        StartError: the file cannot be read, or has another form.
    """
    content, notes = read_log4j(path, where), []
    targets: dict[str, LogTarget] = {}
    for logger, name in LOGGERS.items():
        references = content.loggers.get(logger) or (content.loggers.get("root", []) if name == "ts_log" else [])
        if not references:
            notes.append(f"note: {path}: the logger `{logger}` has no appender; {name}.log is not written")
        for reference in references:
            target, sentences = _target(content, reference, name, environment)
            notes += [f"note: {path}: {sentence}" for sentence in sentences]
            if target is not None and name not in targets:
                targets[name] = target
    return targets, list(dict.fromkeys(notes))


def _target(
    content: Log4j, reference: str, name: str, environment: Mapping[str, str]
) -> tuple[LogTarget | None, list[str]]:
    appender = content.appenders.get(reference)
    if appender is None:
        return None, [f"there is no appender `{reference}`"]
    if not appender.file:
        return None, [f"the appender `{reference}` ({appender.kind}) is no file, and is not used"]
    file = expanded(appender.file, content.properties, environment)
    if file is None:
        return None, [f"the appender `{reference}` is not used: `{appender.file}` has no value"]
    pattern, notes = _pattern(appender, reference, name)
    return LogTarget(Path(file).expanduser().absolute(), pattern), notes


def _pattern(appender: Appender, reference: str, name: str) -> tuple[str, list[str]]:
    usual = f"its lines have TorchServe's own pattern, `{PATTERNS[name]}`"
    if not appender.pattern:
        return PATTERNS[name], [f"the layout {appender.layout} of `{reference}` is not used: {usual}"]
    try:
        Layout(appender.pattern)
    except UnknownConversion as error:
        return PATTERNS[name], [f"`{error.part}` in the pattern of `{reference}` is not known: {usual}"]
    return appender.pattern, []
