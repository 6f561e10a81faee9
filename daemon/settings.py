"""Every setting of the daemon: default, unit, environment variable, help text.

One table feeds the daemon's arguments, the options of `tsctl start` and `tsctl run`, and
the environment: the setting `inference_address` is `--inference-address` and
`TSCTL_INFERENCE_ADDRESS`; `key` is the name in TorchServe's config.properties, if there is one.
A flag wins over the environment, which wins over that file, which wins over the default.

Each `parse_…` function raises ValueError with a sentence that quotes the text.

Standard library only: the command line imports this module.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MIB = 1024 * 1024
ENVELOPES = ("body", "json", "kserve", "kservev2")

_SIZE = re.compile(r"(\d+)\s*(B|KB|KIB|MB|MIB|GB|GIB)?", re.IGNORECASE)
_SHOWN_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_UNITS = {"b": 1, "kb": 1000, "kib": 1024, "mb": 10**6, "mib": MIB, "gb": 10**9, "gib": 1024 * MIB}


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
    return _one_of(text, "a log level", ("debug", "info", "warning", "error"))


def parse_log_format(text: str) -> str:
    return _one_of(text, "a log format", ("text", "json"))


def _one_of(text: str, noun: str, words: tuple[str, ...]) -> str:
    if text.lower() not in words:
        raise ValueError(f"`{text}` is not {noun} ({', '.join(words)})")
    return text.lower()


def parse_names(text: str) -> tuple[str, ...]:
    """Parse comma-separated names, at least one."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError(f"`{text}` contains no name")
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


def parse_origin(text: str) -> str:
    """Parse an origin, `https://app.example`, or `*` for any."""
    if text != "*" and not re.fullmatch(r"https?://[^/\s,*]+", text):
        raise ValueError(f"`{text}` is not an origin: write one, as https://app.example, or * for any")
    return text


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that an operator may choose.

    Attributes:
        default: None if the daemon works out the value (see `help`).
        parse: converts text to a value; raises ValueError with a sentence that quotes the text.
        key: the name in TorchServe's config.properties; empty if there is none.
    """

    name: str
    default: Any
    parse: Callable[[str], Any]
    metavar: str
    help: str
    key: str = ""

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return "TSCTL_" + self.name.upper()


SETTINGS: tuple[Setting, ...] = (
    Setting("socket", None, parse_path, "PATH", "The control socket [default: in $XDG_RUNTIME_DIR or /tmp/tsctl-UID]."),
    Setting(
        "state_dir", None, parse_path, "DIR", "The directory of logs and registrations [default: ~/.local/state/tsctl]."
    ),
    Setting("ts_config", None, parse_path, "FILE", "TorchServe's config.properties."),
    Setting("model_store", None, parse_path, "DIR", "The directory of model archives.", "model_store"),
    Setting(
        "models",
        None,
        parse_models,
        "MODELS",
        "Models to load at the start: ALL, or comma-separated [NAME=]ARCHIVE.",
        "load_models",
    ),
    Setting("restore", True, parse_boolean, "true|false", "Restore the models that the last run had registered."),
    Setting(
        "inference_address",
        "127.0.0.1:8080",
        str,
        "ADDRESS",
        "The address of the inference API: HOST:PORT, or `none` for the control socket only.",
        "inference_address",
    ),
    Setting(
        "metrics_address",
        None,
        str,
        "ADDRESS",
        "An additional address that serves only /metrics: HOST:PORT.",
        "metrics_address",
    ),
    Setting("metrics", True, parse_boolean, "true|false", "Serve /metrics.", "enable_metrics_api"),
    Setting(
        "management_address",
        None,
        str,
        "ADDRESS",
        "The address of TorchServe's management API: HOST:PORT [default: only the control socket].",
        "management_address",
    ),
    Setting(
        "management_without_token",
        False,
        parse_boolean,
        "true|false",
        "Let every client that reaches the management address register code.",
        "disable_token_authorization",
    ),
    Setting(
        "token_file",
        None,
        parse_path,
        "FILE",
        "A 0600 file with the token of the management address [default: TSCTL_TOKEN].",
    ),
    Setting(
        "inference_token_file",
        None,
        parse_path,
        "FILE",
        "A 0600 file with the token of the inference API [default: TSCTL_INFERENCE_TOKEN].",
    ),
    Setting(
        "allowed_host",
        None,
        parse_names,
        "NAMES",
        "Additional host names of the management address, comma-separated.",
    ),
    Setting(
        "allowed_urls",
        None,
        parse_patterns,
        "PATTERNS",
        "Comma-separated regular expressions of the URLs that archives may come from [default: none].",
        "allowed_urls",
    ),
    Setting(
        "cors_allowed_origin",
        None,
        parse_origin,
        "ORIGIN",
        "The origin whose web pages may read answers of the inference API; * for any.",
        "cors_allowed_origin",
    ),
    Setting(
        "cors_allowed_methods", None, parse_header, "LIST", "The methods these pages may use.", "cors_allowed_methods"
    ),
    Setting(
        "cors_allowed_headers", None, parse_header, "LIST", "The headers these pages may send.", "cors_allowed_headers"
    ),
    Setting(
        "certificate_file",
        None,
        parse_path,
        "FILE",
        "A PEM certificate with its chain, to serve HTTPS.",
        "certificate_file",
    ),
    Setting(
        "private_key_file", None, parse_path, "FILE", "The PEM private key of the certificate.", "private_key_file"
    ),
    Setting(
        "grace",
        30.0,
        parse_seconds,
        "SECONDS",
        "How long a graceful shutdown waits for running requests.",
        "unregister_model_timeout",
    ),
    Setting("max_request_size", 64 * MIB, parse_size, "BYTES", "The largest request body.", "max_request_size"),
    Setting(
        "max_receiving_bytes",
        None,
        parse_size,
        "BYTES",
        "The most bytes of request bodies received at once [default: 512MiB, or twice the largest body].",
        "max_receiving_bytes",
    ),
    Setting(
        "max_sending_bytes",
        512 * MIB,
        parse_size,
        "BYTES",
        "The most bytes of all answers that wait for their clients; one connection may have an eighth.",
    ),
    Setting("queue_jobs", 100, parse_count, "JOBS", "Requests that may wait for one model version.", "job_queue_size"),
    Setting("queue_bytes", 256 * MIB, parse_size, "BYTES", "Bytes that may wait for one model version."),
    Setting(
        "response_timeout",
        120.0,
        parse_timeout,
        "SECONDS",
        "How long a worker may take for a batch.",
        "default_response_timeout",
    ),
    Setting(
        "startup_timeout",
        120.0,
        parse_timeout,
        "SECONDS",
        "How long a worker may take to load its model.",
        "default_startup_timeout",
    ),
    Setting("header_timeout", 10.0, parse_seconds, "SECONDS", "How long a request's headers may take to arrive."),
    Setting("body_timeout", 60.0, parse_seconds, "SECONDS", "How long a request's body may take to arrive."),
    Setting("keep_alive", 75.0, parse_seconds, "SECONDS", "How long an idle connection stays open."),
    Setting("archive_bytes", 16 * 1024 * MIB, parse_size, "BYTES", "The most bytes that one archive may unpack to."),
    Setting("archive_files", 10_000, parse_count, "FILES", "The most files and directories that one archive may hold."),
    Setting(
        "install_requirements",
        False,
        parse_boolean,
        "true|false",
        "Install the requirements.txt of archives with pip.",
        "install_py_dep_per_model",
    ),
    Setting(
        "default_workers",
        None,
        parse_number,
        "WORKERS",
        "Workers of a model if neither the registration nor the archive names a number.",
        "default_workers_per_model",
    ),
    Setting(
        "default_handler", None, str, "HANDLER", "The handler of an archive that names none.", "default_service_handler"
    ),
    Setting(
        "envelope",
        None,
        parse_envelope,
        "ENVELOPE",
        "Every model's request envelope: body, json, kserve, kservev2.",
        "service_envelope",
    ),
    Setting(
        "decode_input",
        True,
        parse_boolean,
        "true|false",
        "Decode JSON and text before the handler sees them.",
        "decode_input_request",
    ),
    Setting(
        "limit_image_pixels",
        True,
        parse_boolean,
        "true|false",
        "Refuse images of absurdly many pixels.",
        "limit_max_image_pixels",
    ),
    Setting(
        "hide_environment",
        None,
        parse_pattern,
        "REGEX",
        "Environment variables to hide from workers: a regular expression of names.",
        "blacklist_env_vars",
    ),
    Setting(
        "template", True, parse_boolean, "true|false", "Fork workers from a process that has imported torch already."
    ),
    Setting("access_log", True, parse_boolean, "true|false", "Log a line for each request."),
    Setting("log_level", "info", parse_level, "LEVEL", "The daemon's log level: debug, info, warning or error."),
    Setting(
        "log_format", "text", parse_log_format, "FORMAT", "The lines of all logs: text, or json (an object a line)."
    ),
)
