"""Schemathesis asks a real daemon what its OpenAPI descriptions allow, and something else: `make fuzz` runs it last.

    python -m tests.lab.fuzz.description [--seconds 30] [--seed N]

Every answer has a status, a content type and a document that the description tells of, and none is a bug. One model
without torch is registered; commands go to the management address, for the control socket would take any path.
"""

import argparse
import http.client
import io
import random
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import requests
import schemathesis
import urllib3
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from requests.adapters import HTTPAdapter
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.e2e.served import Served

# Not among them: that what is wrong is refused, for where TorchServe is lenient we are; nor that any method but those
# described is, for any predicts.
_CHECKS = [
    content_type_conformance, response_headers_conformance, response_schema_conformance, status_code_conformance,
]  # fmt: skip
_MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
_LIKELY = {
    "model_name": ("echo", "echo", "other"),
    "model_version": ("1.0", "2.0"),
    "url": ("echo.mar", "second.mar", "other.mar"),
    "synchronous": ("true",),
    "response_timeout": ("5",),
    "startup_timeout": ("5",),
    "x-request-deadline-ms": ("2000",),
}
# Few, whatever is drawn: each worker is a process.
_COUNTS = ("initial_workers", "min_worker", "max_worker")
_BUG = b"The daemon failed"
_EACH = 8  # requests of an operation in a round, of each mode


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.fuzz.description")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        try:
            _prepare(served)
            return _ask(served, asked.seconds, asked.seed)
        finally:
            served.stop()


def _prepare(served: Served) -> None:
    served.start(
        "--management-address", "127.0.0.1:0", "--management-without-token", "--enable-model-api", "--no-restore"
    )
    second = served.store / served.pack("echo", version="2.0")
    second.rename(served.store / "second.mar")
    served.pack("echo", "other")
    served.register("echo")


def _ask(served: Served, seconds: float, first: int) -> int:
    """Ask every operation in turn until the time is over; say what came of it."""
    end, number, asked = time.monotonic() + seconds, first, 0
    operations = list(_operations(served))
    while time.monotonic() < end:
        for operation, base, session in operations:
            for mode in _modes(operation):
                try:
                    asked += _ask_one(operation, mode, base, session, number)
                except Exception as error:  # noqa: BLE001 - whatever is found is told
                    print(f"broken, with --seed {first}: {operation.label}\n{_told(error)}")
                    return 1
        number += 1
        served.tsctl("status")
        if served.command("GET", "/models/echo/1.0").status == 404:  # it was unregistered: the next round has it again
            served.tsctl("register", "echo.mar")
    print(f"{asked:,} requests to {len(operations)} operations, and every answer is described (seed {first})")
    return 0


def _modes(operation: Any) -> Sequence[GenerationMode]:
    """What is described, and what is not, where anything is not: a text may be any."""
    parameters = operation.schema.raw_schema["paths"][operation.path][operation.method]["parameters"]
    return _MODES if any(each["schema"].get("type") != "string" for each in parameters) else _MODES[:1]


def _told(error: Exception) -> str:
    """The message, and those of a group."""
    inner = getattr(error, "exceptions", ())
    return "\n".join([str(error), *map(_told, inner)])


def _operations(served: Served) -> Iterator[tuple[Any, str, requests.Session]]:
    """Every operation, where it is asked, and how."""
    tcp, unix = requests.Session(), requests.Session()
    unix.mount("http://tsctl", _Socket(served.environment["TSCTL_SOCKET"]))
    management = served.status["managementAddress"]
    for base, session, method, target, prefix in (
        (served.url, tcp, "OPTIONS", "/", "/"),
        (management, tcp, "OPTIONS", "/models", "/"),
        ("http://tsctl", unix, "OPTIONS", "/models", "/tsctl"),
    ):
        description = session.request(method, base + target, timeout=10).json()
        description["paths"] = {
            path: told for path, told in description["paths"].items()
            if path.startswith(prefix) and path != "/tsctl/upgrade"  # which would start any program
        }  # fmt: skip
        schema = schemathesis.openapi.from_dict(description)
        for found in schema.get_all_operations():
            yield found.ok(), base, session


def _ask_one(operation: Any, mode: GenerationMode, base: str, session: requests.Session, number: int) -> int:
    asked = 0

    @seed(number)
    @settings(max_examples=_EACH, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode), chance=st.integers(0, 2**32))
    def ask(case: Any, chance: int) -> None:
        nonlocal asked
        _put_likely(case, random.Random(chance))
        response = case.call(base, session, timeout=30)
        assert _BUG not in response.content, response.content
        case.validate_response(response, checks=_CHECKS)
        asked += 1

    ask()
    return asked


def _put_likely(case: Any, chance: random.Random) -> None:
    """Ask mostly for what is there, and for few workers."""
    for place in (case.path_parameters, case.query, case.headers):
        for name in place or {}:
            if name in _LIKELY and chance.random() < 0.8:
                place[name] = chance.choice(_LIKELY[name])
            elif name in _COUNTS and str(place[name]).strip().isdigit():
                place[name] = int(place[name]) % 3


class _Socket(HTTPAdapter):
    """Sends requests to a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def send(self, request: Any, *arguments: Any, **options: Any) -> requests.Response:
        connection = http.client.HTTPConnection("tsctl", timeout=30)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self._path)
        connection.request(request.method, request.path_url, request.body, dict(request.headers))
        answer = connection.getresponse()
        raw = urllib3.HTTPResponse(
            io.BytesIO(answer.read()), answer.getheaders(), answer.status, reason=answer.reason, preload_content=False
        )
        connection.close()
        return self.build_response(request, raw)


if __name__ == "__main__":
    sys.exit(main())
