"""Our daemon as one of the two sides: a real one, on a socket and a port of its own."""

import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.models import pack
from tests.conformance.side import Side
from tests.conformance.torchserve import MAX_REQUEST
from tests.e2e.served import Served


@contextlib.contextmanager
def our_daemon(folder: Path) -> Iterator[Side]:
    """Run a daemon with the archives in its store while the block lasts; `folder` is empty."""
    served = Served(folder)
    pack(served.store)
    served.start("--max-request-size", str(MAX_REQUEST))
    try:
        host, _, port = served.status["inferenceAddress"].removeprefix("http://").rpartition(":")
        private = {
            str(served.store): "<store>",
            str(folder / "state"): "<state>",
            str(folder): "<folder>",
            sys.prefix: "<environment>",
            socket.gethostname(): "<host>",
            port: "<inference port>",
        }
        yield Side((host, int(port)), str(folder / "control.sock"), private)
    finally:
        served.stop()
