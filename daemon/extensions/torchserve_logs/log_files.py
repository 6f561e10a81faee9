"""TorchServe's log files: which ones the operator wants, and where.

LOG_LOCATION        ts_log.log, model_log.log, access_log.log
METRICS_LOCATION    ts_metrics.log, model_metrics.log
--log-config        those that log4j's loggers of TorchServe write to, instead of both
metrics_mode        `log` and `legacy` want the metrics' files in any case

Their lines are those of TorchServe's own log4j2.xml, whatever pattern a log4j configuration names.
"""

from collections.abc import Mapping
from pathlib import Path

from tsctl.daemon.extensions.torchserve_logs.log4j import LOGGERS, Log4j, expanded, read_log4j

BARE = frozenset(
    {"access_log", "ts_metrics", "model_metrics"}
)  # a time and a text; others have a level, a thread, a logger
NAMES = ("access_log", "ts_log", "model_log", "ts_metrics", "model_metrics")
METRICS = ("ts_metrics", "model_metrics")


def pattern_of(name: str) -> str:
    """Return the pattern of a file's lines, as log4j writes it."""
    return "%d{ISO8601} - %m%n" if name in BARE else "%d{ISO8601} [%-5p] %t %c - %m%n"


def log_targets(
    log_location: Path | None, metrics_location: Path | None, mode: str | None, otherwise: Path
) -> dict[str, Path]:
    """Return the files in these directories; metrics that a mode sends to files are in `otherwise` if in none."""
    if mode in ("log", "legacy"):
        metrics_location = metrics_location or log_location or otherwise
    places = {name: metrics_location if name in METRICS else log_location for name in NAMES}
    return {name: place / f"{name}.log" for name, place in places.items() if place is not None}


def log4j_targets(path: Path, where: str, environment: Mapping[str, str]) -> tuple[dict[str, Path], list[str]]:
    """Return the files that a log4j configuration names, and notes about what of it is not used.

    Raises:
        StartError: the file cannot be read, or has another form.
    """
    content, notes = read_log4j(path, where), []
    targets: dict[str, Path] = {}
    for logger, name in LOGGERS.items():
        references = content.loggers.get(logger) or (content.loggers.get("root", []) if name == "ts_log" else [])
        if not references:
            notes.append(f"note: {path}: the logger `{logger}` has no appender; {name}.log is not written")
        for reference in references:
            target, sentence = _target(content, reference, name, environment)
            if sentence:
                notes.append(f"note: {path}: {sentence}")
            if target is not None and name not in targets:
                targets[name] = target
    return targets, list(dict.fromkeys(notes))


def _target(content: Log4j, reference: str, name: str, environment: Mapping[str, str]) -> tuple[Path | None, str]:
    """Return the file of a logger's appender, and what of the appender is not used, in a sentence or none."""
    appender = content.appenders.get(reference)
    if appender is None:
        return None, f"there is no appender `{reference}`"
    if not appender.file:
        return None, f"the appender `{reference}` ({appender.kind}) is no file, and is not used"
    file = expanded(appender.file, content.properties, environment)
    if file is None:
        return None, f"the appender `{reference}` is not used: `{appender.file}` has no value"
    ours, sentence = pattern_of(name), ""
    if appender.layout != ours:
        sentence = f"the layout `{appender.layout}` of `{reference}` is not used: its lines have TorchServe's `{ours}`"
    return Path(file).expanduser().absolute(), sentence
