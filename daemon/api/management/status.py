"""The documents of `/tsctl/status` and `/tsctl/config`: addresses, models and settings of the daemon."""

import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tsctl.daemon.api.management.describe import FieldsOf, no_fields, overview_of
from tsctl.daemon.config.config import Config
from tsctl.daemon.config.endpoints import Endpoint, address_of
from tsctl.daemon.config.tokens import Tokens
from tsctl.daemon.core import job
from tsctl.daemon.declarations import VersionView
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.tables import SETTINGS


def is_compiled() -> bool:
    """Return whether the modules on the path of a request were compiled at the installation (hatch_build.py)."""
    return not str(job.__file__).endswith(".py")


def tsctl_version() -> str:
    """Return the installed version, or `unknown` in an uninstalled tree."""
    try:
        return version("tsctl")
    except PackageNotFoundError:
        return "unknown"


@dataclass(frozen=True, slots=True)
class Urls:
    """The TCP addresses of the services; None for a service without one."""

    inference: str | None = None
    management: str | None = None
    metrics: str | None = None


def urls_of(bound: Sequence[tuple[Endpoint, socket.socket]]) -> Urls:
    """Return the URL of each role; metrics only with their own address, or management's."""
    found: dict[str, str] = {}
    for endpoint, listening in bound:
        url = address_of(listening, "https" if endpoint.tls else "http")
        found |= dict.fromkeys(endpoint.roles - ({"metrics"} if endpoint.inference else set()), url)
    return Urls(**found)


def status_document(
    config: Config, urls: Urls, registry: Registry, started: float, fields: FieldsOf = no_fields
) -> dict[str, Any]:
    """Return the document of `tsctl status`, without what supervision and services add to it as a whole.

    Args:
        started: seconds since the epoch.
        fields: returns those of extensions.
    """
    return {
        "pid": os.getpid(),
        "version": tsctl_version(),
        "compiled": is_compiled(),
        "python": sys.executable,
        "prefix": sys.prefix,
        "pythonVersion": sys.version.split()[0],
        "started": started,
        "inferenceAddress": urls.inference,
        "managementAddress": urls.management,
        "metricsAddress": urls.metrics,
        "socket": str(config.socket),
        "stateDir": str(config.state_dir),
        "modelStore": None if config.model_store is None else str(config.model_store),
        "grace": config.grace,
        "registering": sorted(name or "" for name in registry.expected),
        "models": [_listed(model, registry, fields) for model in registry],
    }


def _listed(model: ModelVersion, registry: Registry, fields: FieldsOf) -> dict[str, Any]:
    own = {"threads": model.pool.threads_in_all, "url": model.source.url}
    return overview_of(model, default=registry.is_default(model)) | own | fields(VersionView.LIST, model)


def settings_document(config: Config, tokens: Tokens) -> list[dict[str, Any]]:
    """Return each setting with its value and origin; instead of a token only `set`."""
    return _secrets(tokens.origins) + [
        {
            "name": setting.name,
            "value": _plain(getattr(config, setting.name)),
            "origin": config.origins[setting.name],
        }
        for setting in SETTINGS
    ]


def _secrets(origins: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "value": "set", "origin": origin} for name, origin in sorted(origins.items())]


def _plain(value: Any) -> str | float | bool | Sequence[Any] | None:
    if isinstance(value, tuple):
        return [*value]
    if isinstance(value, re.Pattern):
        return str(value.pattern)
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
