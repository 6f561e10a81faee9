"""Every setting of the daemon: its default, its unit, its environment name, its help.

One table feeds the daemon's arguments, the options of `tsctl start` and `tsctl run`, and
the environment: the setting `inference_address` is `--inference-address` and
`TSCTL_INFERENCE_ADDRESS`. A flag wins over the environment, which wins over the default.

Standard library only: the command line comes in by this door.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MIB = 1024 * 1024

_SIZE = re.compile(r"(\d+)\s*(B|KB|KIB|MB|MIB|GB|GIB)?", re.IGNORECASE)
_UNITS = {"b": 1, "kb": 1000, "kib": 1024, "mb": 10**6, "mib": MIB, "gb": 10**9, "gib": 1024 * MIB}


def parse_path(text: str) -> Path:
    if not text:
        raise ValueError("an empty path")
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError:
        raise ValueError(f"`{text}` begins with a user that this machine does not know") from None


def parse_seconds(text: str) -> float:
    """Read a number of seconds, at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"`{text}` is not a number of seconds")
    return value


def parse_size(text: str) -> int:
    """Read a number of bytes; `64MiB` and `1GB` are understood."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"`{text}` is not a size (write 1048576, 64MiB or 1GB)")
    return int(match[1]) * _UNITS[(match[2] or "B").lower()]


def parse_count(text: str) -> int:
    """Read a whole number, at least 1."""
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


def parse_names(text: str) -> tuple[str, ...]:
    """Read names with commas between them."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError(f"`{text}` names nothing")
    return names


def parse_patterns(text: str) -> tuple[str, ...]:
    """Read regular expressions with commas between them, which therefore hold none."""
    patterns = parse_names(text)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"`{pattern}` is no regular expression: {error}") from None
    return patterns


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that an operator may choose.

    Attributes:
        default: None means that the daemon works it out (see `help`).
        parse: text to value; raises ValueError with a sentence that quotes the text.
    """

    name: str
    default: Any
    parse: Callable[[str], Any]
    metavar: str
    help: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return "TSCTL_" + self.name.upper()


SETTINGS: tuple[Setting, ...] = (
    Setting("socket", None, parse_path, "PATH", "The control socket [default: in $XDG_RUNTIME_DIR or /tmp/tsctl-UID]."),
    Setting("state_dir", None, parse_path, "DIR", "Logs and unpacked archives [default: ~/.local/state/tsctl]."),
    Setting("model_store", None, parse_path, "DIR", "The directory archives come from."),
    Setting("inference_address", "127.0.0.1:8080", str, "ADDRESS", "Where predictions are answered: HOST:PORT."),
    Setting("metrics_address", None, str, "ADDRESS", "A further address that answers only /metrics: HOST:PORT."),
    Setting("metrics", True, parse_boolean, "true|false", "Answer /metrics."),
    Setting("management_address", None, str, "ADDRESS",
        "Where TorchServe's management API is answered: HOST:PORT [default: nowhere but on the control socket]."),
    Setting("management_without_token", False, parse_boolean, "true|false",
        "Let everybody who reaches the management address register code."),
    Setting("token_file", None, parse_path, "FILE",
        "A 0600 file with the token of the management address [default: TSCTL_TOKEN]."),
    Setting("inference_token_file", None, parse_path, "FILE",
        "A 0600 file with a token that predictions need, too [default: TSCTL_INFERENCE_TOKEN]."),
    Setting("allowed_host", None, parse_names, "NAMES",
        "Further names, with commas between them, by which clients may call the management address."),
    Setting("allowed_urls", None, parse_patterns, "PATTERNS",
        "Regular expressions, with commas between them, of the URLs that archives may come from [default: none]."),
    Setting("certificate_file", None, parse_path, "FILE", "A PEM certificate with its chain: the addresses are https."),
    Setting("private_key_file", None, parse_path, "FILE", "The PEM private key of the certificate."),
    Setting("grace", 30.0, parse_seconds, "SECONDS", "How long a stop waits for running requests."),
    Setting("max_request_size", 64 * MIB, parse_size, "BYTES", "The largest request body."),
    Setting("queue_jobs", 100, parse_count, "JOBS", "Requests that may wait for one model version."),
    Setting("queue_bytes", 256 * MIB, parse_size, "BYTES", "Bytes that may wait for one model version."),
    Setting("response_timeout", 120.0, parse_seconds, "SECONDS", "How long a worker may take for a batch."),
    Setting("startup_timeout", 120.0, parse_seconds, "SECONDS", "How long a worker may take to load its model."),
    Setting("header_timeout", 10.0, parse_seconds, "SECONDS", "How long a request's headers may take to arrive."),
    Setting("body_timeout", 60.0, parse_seconds, "SECONDS", "How long a request's body may take to arrive."),
    Setting("keep_alive", 75.0, parse_seconds, "SECONDS", "How long an idle connection stays open."),
    Setting("archive_bytes", 16 * 1024 * MIB, parse_size, "BYTES", "The most that one archive may unpack to."),
    Setting("archive_files", 10_000, parse_count, "FILES", "The most files that one archive may hold."),
    Setting(
        "install_requirements",
        False,
        parse_boolean,
        "true|false",
        "Install the requirements.txt of archives, with pip.",
    ),
    Setting("access_log", True, parse_boolean, "true|false", "Write a line for each request."),
    Setting("log_level", "info", parse_level, "LEVEL", "What the daemon logs: debug, info, warning or error."),
)  # fmt: skip
