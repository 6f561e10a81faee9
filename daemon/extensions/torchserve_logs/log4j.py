"""Read what is needed of a log4j 2 configuration: which file each of TorchServe's logs goes to, and its layout.

Files of the forms XML and properties are read. An entity or a document type in XML is refused: nothing is expanded.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tsctl.daemon.core.errors import StartError

# log4j's loggers of TorchServe, and the name that TorchServe gives to the file of each
LOGGERS = {
    "org.pytorch.serve": "ts_log",
    "ACCESS_LOG": "access_log",
    "MODEL_LOG": "model_log",
    "TS_METRICS": "ts_metrics",
    "MODEL_METRICS": "model_metrics",
}
LONGEST_FILE = 1024 * 1024  # bytes
_FILES = frozenset({"File", "RollingFile", "RandomAccessFile", "RollingRandomAccessFile"})
_LOOKUP = re.compile(r"\$\{([^${}]*)\}")
_REMEDY = "name a log4j 2 file as XML or properties, or set LOG_LOCATION and METRICS_LOCATION instead of `--log-config`"


@dataclass(slots=True)
class Appender:
    """A place of lines; `file` is empty for one that is no file, `layout` a pattern or the name of another layout."""

    kind: str
    file: str = ""
    layout: str = ""


@dataclass(slots=True)
class Log4j:
    """The content of a configuration.

    Attributes:
        appenders: by their names.
        loggers: the names of the appenders of each logger; the root's under `root`.
        properties: values for `${NAME}`.
    """

    appenders: dict[str, Appender] = field(default_factory=dict)
    loggers: dict[str, list[str]] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)


def read_log4j(path: Path, where: str) -> Log4j:
    """Read a configuration.

    Args:
        where: the flag or variable that names the file, for errors.

    Raises:
        StartError: the file cannot be read, or has another form.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST_FILE + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise StartError(f"{where}: cannot read `{path}`: {error.strerror}", _REMEDY) from None
    except UnicodeDecodeError:
        raise StartError(f"{where}: `{path}` is not UTF-8", _REMEDY) from None
    if len(content) > LONGEST_FILE:
        raise StartError(f"{where}: `{path}` is larger than {LONGEST_FILE} bytes", _REMEDY)
    return (
        _read_xml(text, f"{where}: `{path}`") if text.lstrip().startswith("<") else _read_properties(text, path, where)
    )


def expanded(text: str, properties: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """Replace `${env:NAME}`, `${sys:NAME}` and `${NAME}`, with `:-` before a default; None for one without a value.

    TorchServe's system properties LOG_LOCATION and METRICS_LOCATION are those of the environment, `logs` by default.
    """
    for _ in range(10):  # a default, and a property's value, may hold others
        found = _LOOKUP.search(text)
        if found is None:
            return text
        name, defaulted, default = found[1].partition(":-")
        source, _, key = name.rpartition(":")
        locations = {each: environment.get(each) or "logs" for each in ("LOG_LOCATION", "METRICS_LOCATION")}
        values = {"env": environment, "sys": locations, "": {**locations, **properties}}.get(source, {})
        value = values.get(key, default if defaulted else None)
        if value is None:
            return None
        text = text.replace(found[0], value)
    return None


def _read_xml(text: str, place: str) -> Log4j:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise StartError(f"{place} has a document type, which is not read", _REMEDY)
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise StartError(f"{place} is not XML: {error}", _REMEDY) from None
    if root.tag != "Configuration":
        raise StartError(f"{place} is `{root.tag}`, and not the `Configuration` of log4j 2", _REMEDY)
    made = Log4j()
    for each in root.iterfind("Properties/Property"):
        made.properties[each.get("name", "")] = each.get("value") or (each.text or "").strip()
    for each in root.iterfind("Appenders/*"):
        made.appenders[each.get("name", "")] = _appender(each)
    for each in root.iterfind("Loggers/*"):
        name = "root" if each.tag in ("Root", "AsyncRoot") else each.get("name", "")
        made.loggers[name] = [reference.get("ref", "") for reference in each.iterfind("AppenderRef")]
    return made


def _appender(element: ElementTree.Element) -> Appender:
    made = Appender(element.tag, element.get("fileName", "") if element.tag in _FILES else "")
    for child in element:
        if child.tag.endswith("Layout"):
            pattern = child.get("pattern") or (child.findtext("Pattern") or "").strip()
            made.layout = pattern if child.tag == "PatternLayout" else child.tag
    return made


def _read_properties(text: str, path: Path, where: str) -> Log4j:
    import javaproperties  # here, because a daemon without a file saves the time

    try:
        values = javaproperties.loads(text)
    except javaproperties.InvalidUEscapeError as error:
        raise StartError(f"{where}: `{path}`: `{error.escape}` is not a character", _REMEDY) from None
    if values and not any(key.startswith(("appender.", "logger.", "rootLogger.")) for key in values):
        raise StartError(f"{where}: `{path}` has no appender of log4j 2", _REMEDY)
    made = Log4j()
    for key, value in values.items():
        kind, _, rest = key.partition(".")
        name, _, attribute = rest.partition(".")
        if kind == "property":
            made.properties[rest] = value
        elif kind == "appender" and attribute == "name":
            layout = values.get(f"appender.{name}.layout.type", "PatternLayout")
            kind_of = values.get(f"appender.{name}.type", "")
            file = values.get(f"appender.{name}.fileName", "") if kind_of in _FILES else ""
            if layout == "PatternLayout":
                layout = values.get(f"appender.{name}.layout.pattern", "")
            made.appenders[value] = Appender(kind_of, file, layout)
        elif kind == "logger" and attribute == "name":
            references = (each for each in values if each.startswith(f"logger.{name}.appenderRef."))
            made.loggers[value] = [values[each] for each in references]
        elif kind == "rootLogger" and name == "appenderRef":
            made.loggers.setdefault("root", []).append(value)
    return made


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
    """TorchServe's log files: which ones the operator wants, and where.

    LOG_LOCATION        ts_log.log, model_log.log, access_log.log
    METRICS_LOCATION    ts_metrics.log, model_metrics.log
    --log-config        those that log4j's loggers of TorchServe write to, instead of both
    metrics_mode        `log` and `legacy` want the metrics' files in any case

    Their lines are those of TorchServe's own log4j2.xml, whatever pattern a log4j configuration names.

    Return the files that a log4j configuration names, and notes about what of it is not used.

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
