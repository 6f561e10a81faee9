"""A setting, and the values of settings as text: what an operator writes, and what is shown.

Each `parse_…` function raises ValueError with a sentence that quotes the text.

Standard library only: the command line imports this module.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

MIB = 1024 * 1024
FOREVER = 1e9  # seconds
ENVELOPES = ("body", "json", "kserve", "kservev2")

_SIZE = re.compile(r"(\d+)\s*(B|KB|KIB|MB|MIB|GB|GIB)?", re.IGNORECASE)
_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(s|m|h|d)?")
_SPAN_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_SHOWN_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_COLLECTOR = re.compile(r"https?://[^\s/?#]+[^\s?#]*")
_UNITS = {"b": 1, "kb": 1000, "kib": 1024, "mb": 10**6, "mib": MIB, "gb": 10**9, "gib": 1024 * MIB}


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that an operator may choose.

    Attributes:
        default: None if the daemon works out the value (see `help`).
        parse: converts text to a value; raises ValueError with a sentence that quotes the text.
        key: the name in TorchServe's config.properties; empty if there is none.
        theirs: TorchServe's variable of the environment, read whatever config.properties says; empty if there is none.
        vmargs: finds the value in `vmargs` of config.properties, as its first group; empty if it is not there.
        worker: the variable in which TorchServe's workers, and ours, find the value; empty if there is none.
        opens: what the daemon does with the file or directory: reads it, or writes into it; empty for neither.
        manages: names the addresses, a list, at which clients with the management token manage; empty for other values.
        everyday: whether its option is in the short help of `tsctl start`.
        group: the title above its option in the help.
    """

    name: str
    default: Any
    parse: Callable[[str], Any]
    metavar: str
    help: str
    key: str = ""
    theirs: str = ""
    vmargs: str = ""
    worker: str = ""
    opens: Literal["", "read", "write"] = ""
    manages: str = ""
    everyday: bool = False
    group: str = ""

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return "TSCTL_" + self.name.upper()


def grouped(title: str, *settings: Setting) -> tuple[Setting, ...]:
    """Return settings whose options are below this title in the help."""
    return tuple(replace(each, group=title) for each in settings)


def parse_path(text: str) -> Path:
    if not text:
        raise ValueError("the path is empty")
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError:
        raise ValueError(f"`{text}` begins with an unknown user") from None


def parse_seconds(text: str) -> float:
    """Parse a number of seconds, at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"`{text}` is not a number of seconds")
    return value


def parse_timeout(text: str) -> float:
    """Parse a number of seconds, more than 0."""
    value = parse_seconds(text)
    if value == 0:
        raise ValueError(f"`{text}` is not a timeout of more than 0 seconds; leave the setting out for the default")
    return value


def parse_span(text: str) -> float:
    """Parse a time such as `90`, `30s`, `5m`, `2h`, `1d` or `forever`, and return seconds, at most `FOREVER`."""
    word = text.strip().lower()
    if word == "forever":
        return FOREVER
    match = _SPAN.fullmatch(word)
    if match is None or float(match[1]) * _SPAN_UNITS[match[2] or "s"] > FOREVER:
        raise ValueError(f"`{text}` is not a time (write 30s, 5m, 2h or forever)")
    return float(match[1]) * _SPAN_UNITS[match[2] or "s"]


def span_text(seconds: float) -> str:
    """Return seconds as `parse_span` reads them, in the largest unit that gives a whole number: `5m`."""
    if seconds >= FOREVER:
        return "forever"
    whole = (f"{seconds // size:.0f}{unit}" for unit, size in _SPAN_UNITS.items() if seconds and seconds % size == 0)
    return next(whole, f"{round(seconds, 3)}s" if seconds else "0s")


def parse_size(text: str) -> int:
    """Parse a number of bytes, such as `1048576`, `64MiB` or `1GB`."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"`{text}` is not a size (write 1048576, 64MiB or 1GB)")
    return int(match[1]) * _UNITS[(match[2] or "B").lower()]


def size_text(size: int) -> str:
    """Return a size in bytes as readable text: `4 GiB`, `1.5 GiB`, `700 MiB`."""
    for unit, name in _SHOWN_UNITS:
        if size >= unit:
            return f"{size / unit:.3g} {name}" if size < 1000 * unit else f"{size // unit} {name}"
    return f"{size} bytes"


def parse_count(text: str) -> int:
    """Parse a whole number, at least 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(f"`{text}` is not a whole number of at least 1")
    return int(text)


def parse_boolean(text: str) -> bool:
    word = text.lower()
    if word not in ("true", "false"):
        raise ValueError(f"`{text}` is neither true nor false")
    return word == "true"


def parse_level(text: str) -> str:
    if text.lower() not in ("debug", "info", "warning", "error"):
        raise ValueError(f"`{text}` is not a log level (debug, info, warning, error)")
    return text.lower()


def parse_log_format(text: str) -> str:
    if text not in ("text", "json"):
        raise ValueError(f"`{text}` is not a log format (text, json)")
    return text


def parse_names(text: str) -> tuple[str, ...]:
    """Parse comma-separated names, at least one."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError(f"`{text}` contains no name")
    return names


def parse_networks(text: str) -> tuple[str, ...]:
    """Parse comma-separated addresses and networks: `10.0.0.0/8`, `127.0.0.1`."""
    import ipaddress  # here, because it takes 3 ms, and few name any

    names = parse_names(text)
    for name in names:
        try:
            ipaddress.ip_network(name)
        except ValueError as error:
            raise ValueError(f"`{name}` is no address or network such as 10.0.0.0/8: {error}") from None
    return names


def parse_patterns(text: str) -> tuple[str, ...]:
    """Parse comma-separated regular expressions, which therefore hold no comma."""
    patterns = parse_names(text)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"`{pattern}` is not a regular expression: {error}") from None
    return patterns


def parse_number(text: str) -> int:
    """Parse a whole number, at least 0."""
    return 0 if text == "0" else parse_count(text)


def parse_models(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of `ALL` and `[NAME=]ARCHIVE`, which may be empty."""
    models = tuple(filter(None, map(str.strip, text.split(","))))
    for model in models:
        name, equals, archive = model.partition("=")
        if equals and not (name.strip() and archive.strip()):
            raise ValueError(f"`{model}` is neither ARCHIVE nor NAME=ARCHIVE")
    return models


def parse_envelope(text: str) -> str:
    if text not in ENVELOPES:
        raise ValueError(f"`{text}` is not a request envelope ({', '.join(ENVELOPES)})")
    return text


def parse_ratio(text: str) -> float:
    """Parse a number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise ValueError(f"`{text}` is not a number from 0 to 1")
    return value


def parse_collector(text: str) -> str:
    """Parse the URL of a collector, or `none`."""
    if text != "none" and not _COLLECTOR.fullmatch(text):
        raise ValueError(f"`{text}` is neither a URL such as http://127.0.0.1:4318 nor `none`")
    return text


def parse_pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"`{text}` is not a regular expression: {error}") from None


def parse_header(text: str) -> str:
    """Parse the value of an HTTP header."""
    if not (text.isascii() and text.isprintable()):
        raise ValueError(f"`{text}` cannot be the value of a header: use printable ASCII characters")
    return text.strip()


def parse_header_name(text: str) -> str:
    """Parse the name of an HTTP header."""
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", text):
        raise ValueError(f"`{text}` is not the name of a header: use letters, digits, `-` and `_`")
    return text


def parse_origin(text: str) -> str:
    """Parse an origin, `https://app.example`, or `*` for any."""
    if text != "*" and not re.fullmatch(r"https?://[^/\s,*]+", text):
        raise ValueError(f"`{text}` is not an origin: write one, as https://app.example, or * for any")
    return text
