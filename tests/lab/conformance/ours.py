"""Our daemon as one of the two sides: a real one, on a socket and ports of its own."""

import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.served import Served
from tests.lab.conformance.case import Variant
from tests.lab.conformance.models import pack
from tests.lab.conformance.side import Side
from tests.lab.conformance.talk import Address

_TOKENS = {"<inference token>": "inference-token-of-a-case", "<management token>": "management-token-of-a-case"}


@contextlib.contextmanager
def our_daemon(folder: Path, variant: Variant) -> Iterator[Side]:
    """Run a daemon with the archives in its store while the block lasts; `folder` is empty."""
    served = Served(folder)
    pack(served.store)
    config = folder / "config.properties"
    config.write_text(variant.config())
    options = ["--ts-config", str(config), "--metrics-address", "127.0.0.1:0"]
    management: Address = str(folder / "control.sock")
    if variant.tokens:  # which no process of this user needs on the control socket
        options += ["--management-address", "127.0.0.2:0", "--allowed-host", "localhost", *_token_files(folder)]
    served.start(*options)
    try:
        inference, metrics = (_address(served.status[f"{name}Address"]) for name in ("inference", "metrics"))
        if variant.tokens:
            management = _address(served.status["managementAddress"])
        private = {
            str(served.store): "<store>",
            str(folder / "state"): "<state>",
            str(folder): "<folder>",
            sys.prefix: "<environment>",
            socket.gethostname(): "<host>",
            str(inference[1]): "<inference port>",
        }
        yield Side(inference, management, metrics, private, _TOKENS if variant.tokens else {})
    finally:
        served.stop()


def _address(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").rpartition(":")
    return host, int(port)


def _token_files(folder: Path) -> list[str]:
    options = []
    for option, word in (("--token-file", "<management token>"), ("--inference-token-file", "<inference token>")):
        file = folder / option.removeprefix("--")
        file.touch(mode=0o600)
        file.write_text(_TOKENS[word])
        options += [option, str(file)]
    return options
