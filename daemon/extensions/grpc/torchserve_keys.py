"""TorchServe's keys for gRPC: `grpc_inference_*` opens inference; `grpc_management_*` management, with a token only."""

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

_PORTS = {"inference": "7070", "management": "7071"}  # TorchServe's


def read_keys(
    keys: Mapping[str, str], values: Mapping[str, Any], *, token: bool
) -> tuple[Mapping[str, Any], Sequence[str]]:
    """Return the gRPC addresses that the keys name, where no setting does, and notes on those that are not obeyed.

    Args:
        keys: those that the file has, and their values.
        values: by the names of settings.
        token: whether a management token is set.
    """
    found: dict[str, Any] = {}
    notes = []
    for service, port in _PORTS.items():
        named = {key: value for key, value in keys.items() if key.startswith(f"grpc_{service}_") and value}
        setting = "grpc_address" if service == "inference" else "grpc_management_address"
        if not named or values[setting] is not None:
            continue
        address = _address_of(named.get(f"grpc_{service}_address", ""), named.get(f"grpc_{service}_port", ""), port)
        which = ", ".join(sorted(named))
        verb = "has" if len(named) == 1 else "have"
        if importlib.util.find_spec("grpc") is None:
            notes.append(f"note: {which} {verb} no effect: gRPC needs `pip install 'tsctl[grpc]'`")
        elif service == "management" and not token:
            notes.append(
                f"note: {which} {verb} no effect: management over gRPC needs a token, because its clients can run code"
                " here: add `--token-file FILE`"
            )
        else:
            found[setting] = (address,)
    return found, notes


def _address_of(host: str, port: str, usual: str) -> str:
    """Return HOST:PORT; one of TorchServe's own examples has a URL as its port.

    Args:
        host, port: as in the file; empty if not there.
        usual: the port without any.
    """
    given, place = urlsplit(port), urlsplit(host)
    if given.scheme and given.hostname:
        host, port = host or given.hostname, given.netloc.rpartition(":")[2]
    if place.scheme and place.hostname:
        host = place.hostname
    return f"{host or '127.0.0.1'}:{port or usual}"
