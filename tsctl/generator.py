"""Run the load generator against a model: the route to the inference address, and the generator's process.

The daemon reports, on the control socket, its inference address, the certificate used there, and the file of the
required token.
"""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from tsctl.client import DaemonClient, refuse
from tsctl.errors import CliError

# -P: ignores a folder named `tsctl` in the user's working directory.
GENERATOR = (sys.executable, "-P", "-m", "tsctl.loadgen")
TOKEN_VARIABLES = ("TSCTL_INFERENCE_TOKEN", "TSCTL_TOKEN")  # the management token also authorizes predictions
MOST_CONNECTIONS = 1000  # of the open loop
BUSY = 0.85  # of the time: a load generator that computes, or waits for a core, this long may be the bottleneck
_UNANSWERED = {
    "closed": "connection closed without an answer",
    "refused": "connection refused",
    "timeout": "not answered in time",
    "unanswered": "unanswered at the end",
}
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def way_to(client: DaemonClient, token_file: Path | None) -> dict[str, Any]:
    """Return how to reach predictions: the part of an order with the address and the token.

    Without an inference address, the control socket is used, which needs no token.

    Raises:
        CliError: a token is required and none can be read, or the certificate cannot be read.
    """
    url = client.json("GET", "/tsctl/status")["inferenceAddress"]
    if not url:
        return {"unix": str(client.path)}
    settings = {setting["name"]: setting["value"] for setting in client.json("GET", "/tsctl/config")}
    return _way(urlsplit(url), settings, token_file)


def call_way_to(client: DaemonClient, token_file: Path | None) -> dict[str, Any]:
    """Return how to reach predictions over gRPC: the part of an order with the address and the token.

    Raises:
        CliError: the daemon has no gRPC address, gRPC is not installed here, or as `way_to`.
    """
    if importlib.util.find_spec("grpc") is None:
        raise CliError("gRPC is not installed here", "`pip install 'tsctl[grpc]'`")
    addresses = client.json("GET", "/tsctl/status").get("grpcAddresses") or []
    settings = {setting["name"]: setting["value"] for setting in client.json("GET", "/tsctl/config")}
    if not addresses:
        raise CliError("the daemon has no gRPC address", "start it with `--grpc-address HOST:PORT`")
    split = urlsplit(addresses[0])
    return {"grpc": True} | _way(split, settings, token_file)


def _way(split: SplitResult, settings: dict[str, Any], token_file: Path | None) -> dict[str, Any]:
    host = split.hostname or ""
    way: dict[str, Any] = {"host": _EVERYWHERE.get(host, host), "port": split.port}
    if split.scheme in ("https", "grpcs"):
        way["certificate"] = _readable(Path(settings["certificate_file"]), "the daemon's certificate")
    if "inference_token" in settings or settings.get("keys_file"):
        own = settings.get("inference_token_file")
        way["headers"] = [["Authorization", f"Bearer {_token(token_file, Path(own) if own else None)}"]]
    return way


def _token(given: Path | None, own: Path | None) -> str:
    found = None if given is not None else next(filter(None, map(os.environ.get, TOKEN_VARIABLES)), None)
    if found is None:
        file = given or own
        if file is None:
            raise CliError(
                "predictions need a token here", f"name its file with `--token-file`, or set {TOKEN_VARIABLES[0]}"
            )
        found = Path(_readable(file, "the token file")).read_text("latin-1")
    return found.strip()


def _readable(file: Path, what: str) -> str:
    try:
        file.open("rb").close()
    except OSError as error:
        raise CliError(f"cannot read {what} `{file}`: {error.strerror}") from None
    return str(file)


class Generator:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def break_off(self) -> None:
        """Request the figures counted so far."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the generator's events, `running` and then `done`; may be called again after Ctrl-C.

        Raises:
            CliError: the first request failed, or the generator did.
        """
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event: dict[str, Any] = json.loads(line)
            match event["stage"]:
                case "failed":
                    raise CliError(event["message"])
                case "refused":
                    refuse(event["status"], event["body"], "the model answered the first request")
                case _:
                    yield event
                    if event["stage"] == "done":
                        return
        raise CliError(f"the load generator ended with exit code {self._process.wait()}; see its output above")


@contextmanager
def generator(order: dict[str, Any], body: bytes) -> Iterator[Generator]:
    """Run the load generator within the block. Ctrl-C at the terminal does not reach the process."""
    # Unbuffered: a line is read as it comes, and Ctrl-C loses none.
    process = subprocess.Popen(
        GENERATOR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
    )
    try:
        assert process.stdin is not None
        line = json.dumps(order | {"body_bytes": len(body)}).encode() + b"\n"
        try:
            for piece in (line, body):
                _write(process, piece)
        except BrokenPipeError:
            pass  # the generator reports the reason
        yield Generator(process)
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        process.wait()


def _write(process: subprocess.Popen[bytes], data: bytes) -> None:
    view = memoryview(data)
    assert process.stdin is not None
    while view:
        view = view[process.stdin.write(view) :]


def failure_texts(found: dict[str, Any]) -> list[str]:
    """Return how many requests failed in each way, by the figures of a run, and what the first answer of a way says."""
    reasons = found["reasons"]
    rejected = {
        f"status {status}" + (f" (the first: {reasons[status]})" if status in reasons else ""): count
        for status, count in found["statuses"].items()
        if status != "OK" and status[0] != "2"
    }
    unanswered = {_UNANSWERED[kind]: count for kind, count in found["failures"].items()}
    return [f"{count} × {text}" for text, count in (rejected | unanswered).items()]
