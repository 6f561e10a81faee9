"""Addresses, models and directories of a daemon in a container, where nobody named them.

A flag and a variable TSCTL_… always win: this module then leaves the setting alone. The values of config.properties
are kept where the host's contract allows them:

    setting              plain                        KServe                        SageMaker
    ------------------   --------------------------   ---------------------------   --------------------------
    inference            the file's, or 0.0.0.0:8080  0.0.0.0:8080                  0.0.0.0:8080 or its variable
    gRPC                 the file's                   0.0.0.0:8081, 0.0.0.0:7070    the file's
    metrics              the file's                   0.0.0.0:8082                  the file's
    management           the file's, on loopback; the control socket if it needs a token that is not there, or if
                         the port is that of predictions or metrics
    models               the file's                   the file's, or all            the file's, or all

Predictions and management share no address here, so that no port meant for predictions lets a client run code.
A setting of an extension that the daemon does without is left out.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tsctl.container.host import PROTOCOL, Host
from tsctl.daemon import paths
from tsctl.daemon.config.properties import ConfigFile
from tsctl.daemon.tables import SETTINGS

EVERYWHERE, LOOPBACK = "0.0.0.0", "127.0.0.1"
_PORTS = {"inference_address": ("8080", "8443"), "management_address": ("8081", "8444")}  # TorchServe's: http, https
_GRPC_MANAGEMENT_PORT = "7071"
_VARIABLES = {setting.name: setting.variable for setting in SETTINGS}
_ENVELOPES = {"v1": "kserve", "v2": "kservev2", "grpc-v2": "kservev2"}


@dataclass(frozen=True, slots=True)
class PlacedSettings:
    """Values for settings that nobody named, and sentences about differences from config.properties."""

    values: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def place(
    given: Mapping[str, Any], environment: Mapping[str, str], file: ConfigFile | None, host: Host, *, grpc: bool
) -> PlacedSettings:
    """Return the settings of the host's contract.

    Args:
        given: the flags, by setting; None where not given.
        file: the config.properties; None if there is none.
        grpc: whether gRPC is installed.
    """
    return _Placing(given, environment, file or ConfigFile(), host).place(without_file=file is None, grpc=grpc)


def grpc_installed() -> bool:
    return find_spec("grpc") is not None and find_spec("google.protobuf") is not None


class _Placing:
    def __init__(self, given: Mapping[str, Any], environment: Mapping[str, str], file: ConfigFile, host: Host) -> None:
        self._given, self._environment, self._file, self._host = given, environment, file, host
        self._placed = PlacedSettings()

    def place(self, *, without_file: bool, grpc: bool) -> PlacedSettings:
        host, environment = self._host, self._environment
        if host is Host.KSERVE:
            self._set("inference_address", f"{EVERYWHERE}:8080")
            self._set("metrics_address", f"{EVERYWHERE}:8082")
            if grpc:
                self._set("grpc_address", f"{EVERYWHERE}:8081,{EVERYWHERE}:7070")
            if without_file:  # with one, `enable_envvars_config=true` decides, as in TorchServe
                envelope = environment.get("TS_SERVICE_ENVELOPE") or _ENVELOPES[environment[PROTOCOL]]
                self._set("envelope", envelope)
        elif host is Host.SAGEMAKER:
            port = environment.get("SAGEMAKER_BIND_TO_PORT") or "8080"
            self._set("inference_address", f"{EVERYWHERE}:{port}")
            self._take_sagemaker()
        elif "inference_address" not in self._file.settings:
            self._set("inference_address", f"{EVERYWHERE}:8080")
        if host is not Host.PLAIN and "models" not in self._file.settings:
            self._set("models", "ALL")
        self._place_management()
        if not self._named("state_dir") and not _can_be_made(environment):
            self._set("state_dir", f"/tmp/tsctl-state-{os.getuid()}")
        return self._placed

    def _named(self, setting: str) -> bool:
        return self._given.get(setting) is not None or _VARIABLES.get(setting, "") in self._environment

    def _value(self, setting: str) -> str:
        """Return a setting's text as it will be: placed here, or from a flag, a variable or the file."""
        if setting in self._placed.values:
            return self._placed.values[setting]
        if self._given.get(setting) is not None:
            return str(self._given[setting])
        variable = _VARIABLES.get(setting, "")
        if variable in self._environment:
            return self._environment[variable]
        found = self._file.settings.get(setting)
        return "" if found is None else found.text

    def _set(self, setting: str, value: str) -> None:
        """Set a setting that no flag and no variable names; note a different value of the file."""
        if setting not in _VARIABLES or self._named(setting):
            return
        found = self._file.settings.get(setting)
        if found is not None and _bare(found.text) != _bare(value):
            self._placed.notes.append(f"note: {found.where}: `{found.text}` is `{value}` in this container")
        self._placed.values[setting] = value

    def _place_management(self) -> None:
        token = self._named("token_file") or bool(self._environment.get("TSCTL_TOKEN"))
        port = self._file.keys.get("grpc_management_port", "")
        if token and not self._named("grpc_management_address") and self._file.keys.keys() & {
            "grpc_management_address", "grpc_management_port"
        }:  # fmt: skip
            port = port.rpartition(":")[2] or _GRPC_MANAGEMENT_PORT
            self._placed.values["grpc_management_address"] = f"{LOOPBACK}:{port}"
        if self._named("management_address") or "management_address" not in self._file.settings:
            return
        address = self._value("management_address")
        if address.lower().startswith("unix:"):
            return
        port = _port(address, _PORTS["management_address"])
        open_to_all = self._value("management_without_token").lower() == "true"
        serving = {_port(self._value("inference_address"), _PORTS["inference_address"])}
        serving |= {_port(text) for text in self._value("grpc_address").split(",")}
        if port in serving:
            self._on_the_control_socket(f"port {port} serves predictions")
        elif port == _port(self._value("metrics_address")):
            self._on_the_control_socket(f"port {port} serves metrics")
        elif not token and not open_to_all:
            self._on_the_control_socket("it needs `--token-file` or `--disable-token-auth`")
        else:
            scheme, separator, _ = address.rpartition("://")
            self._set("management_address", f"{scheme}{separator}{LOOPBACK}:{port}")

    def _on_the_control_socket(self, why: str) -> None:
        found = self._file.settings["management_address"]
        self._placed.values["management_address"] = f"unix:{self._value('socket') or paths.default_socket()}"
        self._placed.notes.append(
            f"note: {found.where}: management is on the control socket only, not at `{found.text}`: {why};"
            " `--management-address` gives it an address"
        )

    def _take_sagemaker(self) -> None:
        """Take the variables of SageMaker's toolkit that have a setting of the daemon; note the others."""
        environment = self._environment
        timeout = environment.get("SAGEMAKER_TS_RESPONSE_TIMEOUT") or environment.get("SAGEMAKER_MODEL_SERVER_TIMEOUT")
        if timeout:
            self._set("response_timeout", timeout)
        workers = environment.get("SAGEMAKER_TS_MIN_WORKERS") or environment.get("SAGEMAKER_MODEL_SERVER_WORKERS")
        if workers:
            self._set("default_workers", workers)
        for variable, instead in _SAGEMAKER_INSTEAD.items():
            if environment.get(variable, "").lower() not in ("", "false"):
                self._placed.notes.append(f"note: {variable} has no effect here: {instead}")


_SAGEMAKER_INSTEAD = {
    "SAGEMAKER_TS_BATCH_SIZE": "`batchSize` in the archive's model-config.yaml is what counts; without it only typed"
    " handlers get batches",
    "SAGEMAKER_TS_MAX_BATCH_DELAY": "`maxBatchDelay` in the archive's model-config.yaml is what counts",
    "SAGEMAKER_TS_MAX_WORKERS": "a model keeps the number of workers that it was given",
    "SAGEMAKER_MULTI_MODEL": "models are registered on the control socket; multi-model endpoints need an address of"
    " management: `--management-address`",
    "SAGEMAKER_PROGRAM": "functions of SageMaker's toolkit are not called; pack a handler with `tsctl archive`",
}


def _bare(address: str) -> str:
    return address.partition("://")[2] or address


def _port(address: str, usual: tuple[str, str] = ("", "")) -> str:
    """Return the port of an address.

    Args:
        usual: the port of an address without one: for http, for https.
    """
    parsed = urlsplit(address if "://" in address else f"//{address}")
    try:
        return usual[parsed.scheme == "https"] if parsed.port is None else str(parsed.port)
    except ValueError:  # the daemon says what is wrong with the address
        return ""


def _can_be_made(environment: Mapping[str, str]) -> bool:
    """Return whether the usual state directory exists, or can be made, and this user may write to it."""
    try:
        state = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError:
        return False
    at = Path(state) / "tsctl"
    while not at.exists() and at != at.parent:
        at = at.parent
    return os.access(at, os.W_OK | os.X_OK)
