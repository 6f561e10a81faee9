"""Where traces are sent: the operator's choice, and what has to be installed for it."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple
from urllib.parse import urlsplit

from tsctl.daemon.core.errors import StartError

OFF = "none"
PATH = "/v1/traces"  # of OTLP over HTTP, after the address of a collector
BASE = "OTEL_EXPORTER_OTLP_ENDPOINT"
EXACT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
INSTALL = "pip install 'tsctl[traces]'"


class Destination(NamedTuple):
    """The URL that spans are sent to, with its path; and which setting or variable names it."""

    url: str
    source: str


def endpoint_of(setting: str | None, environment: Mapping[str, str]) -> Destination | None:
    """Return where traces are sent; None if none are asked for.

    The setting wins. Of OpenTelemetry's variables, `BASE` is the address of a collector for all signals, and `EXACT`
    the whole URL for traces.
    """
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or setting == OFF:
        return None
    if setting is not None:
        return Destination(_with_path(setting), "trace_endpoint")
    if environment.get(EXACT):
        return Destination(environment[EXACT], EXACT)
    if environment.get(BASE):
        return Destination(environment[BASE].rstrip("/") + PATH, BASE)
    return None


def installed() -> bool:
    """Return whether what sends traces is installed; nothing is imported."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:  # one of the packages above it
        return False


def missing(endpoint: Destination) -> str | None:
    """Return why the daemon starts without traces, though they are asked for; None if it does not.

    A variable of OpenTelemetry is meant for every program, so it does not keep the daemon from starting.
    """
    if endpoint.source == "trace_endpoint" or installed():
        return None
    return f"`{endpoint.source}` is set, and no traces are sent: opentelemetry is not installed (`{INSTALL}`)"


def check() -> None:
    """Raise StartError if what sends the traces that a setting asks for is not installed."""
    if not installed():
        raise StartError(
            "`trace_endpoint` is set, and opentelemetry, which sends the traces, is not installed",
            f"install it with `{INSTALL}`, or leave the setting out",
        )


def _with_path(url: str) -> str:
    return url if urlsplit(url).path.strip("/") else url.rstrip("/") + PATH
