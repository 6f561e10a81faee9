"""What a container with some words, variables and a file gets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tsctl.container.host import Host
from tsctl.container.placement import PlacedSettings, place
from tsctl.daemon.config.config import resolve
from tsctl.daemon.config.endpoints import choose_endpoints
from tsctl.daemon.config.properties import read_config_file
from tsctl.daemon.config.tokens import read_tokens
from tsctl.options import daemon_arguments

STATE = {"TSCTL_STATE_DIR": "/nowhere", "TSCTL_SOCKET": "/nowhere/control.sock"}
KSERVE = STATE | {"PROTOCOL_VERSION": "v1"}
DOCKER_FILE = (
    "inference_address=http://0.0.0.0:8080\nmanagement_address=http://0.0.0.0:8081\n"
    "metrics_address=http://0.0.0.0:8082\ngrpc_inference_address=0.0.0.0\ngrpc_management_address=0.0.0.0\n"
)


class Placed:
    """What a container with these words, variables and file gets."""

    def __init__(
        self,
        folder: Path,
        text: str | None = None,
        environment: Mapping[str, str] = STATE,
        host: Host = Host.PLAIN,
        **given: Any,
    ) -> None:
        file = None
        if text is not None:
            given["ts_config"] = folder / "config.properties"
            given["ts_config"].write_text(text)
            file = read_config_file(given["ts_config"], environment)
        self.placement: PlacedSettings = place(given, environment, file, host, grpc=True)
        self.values, self.notes = self.placement.values, "\n".join(self.placement.notes)
        arguments = daemon_arguments(None, given | self.values)
        flags = {
            flag.removeprefix("--").replace("-", "_"): value for flag, _, value in (a.partition("=") for a in arguments)
        }
        self.config = resolve(flags, environment)
        read_tokens(self.config, environment)  # raises where the daemon would not start
        self.addresses = {
            f"{endpoint.host}:{endpoint.port}": sorted(endpoint.roles) for endpoint in choose_endpoints(self.config)
        }
