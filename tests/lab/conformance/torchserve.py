"""Start and stop the real TorchServe, on ports and in folders of its own."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.lab.conformance.side import Side
from tests.lab.conformance.talk import Address, talk
from tests.lab.conformance.variants import PLAIN, Variant

_HTTP = ("inference", "management", "metrics")
_GRPC = ("grpc_inference", "grpc_management")
START = 90.0  # seconds that the Java process may take to listen
STOP = 20.0


class DidNotStart(RuntimeError):
    """TorchServe does not answer; the message ends with the last lines of its log."""


@contextlib.contextmanager
def torchserve(python: Path, folder: Path, store: Path, variant: Variant = PLAIN) -> Iterator[Side]:
    """Run TorchServe while the block lasts.

    Args:
        python: the interpreter of the environment that TorchServe is installed in.
        folder: an empty directory, for its configuration, logs and temporary files.
        store: its model store.

    Raises:
        DidNotStart: it does not answer in time.
    """
    ports = free_ports()
    config = folder / "config.properties"
    config.write_text(variant.config(**addresses(ports)))
    flags = ["--ncs", *([] if variant.tokens else ["--disable-token-auth"])]
    with started(python, folder, store, config, ports, *flags) as side:
        if variant.tokens:
            side.tokens = _tokens(folder)
        yield side


def free_ports() -> dict[str, int]:
    """Return a free port for each of TorchServe's addresses, by their names."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in (*_HTTP, *_GRPC)]
    ports = {name: each.getsockname()[1] for name, each in zip((*_HTTP, *_GRPC), sockets, strict=True)}
    for each in sockets:
        each.close()
    return ports


def addresses(ports: Mapping[str, int]) -> dict[str, object]:
    """Return the keys of config.properties that name these ports."""
    http = {f"{name}_address": f"http://127.0.0.1:{ports[name]}" for name in _HTTP}
    return {**http, **{f"{name}_port": ports[name] for name in _GRPC}}


@contextlib.contextmanager
def started(
    python: Path, folder: Path, store: Path, config: Path, ports: Mapping[str, int], *flags: str
) -> Iterator[Side]:
    """Run TorchServe from a file of the kind config.properties, which names its ports, while the block lasts.

    Args:
        folder: a directory, for its logs, its snapshots and temporary files.
        flags: further ones of `torchserve --start`.

    Raises:
        DidNotStart: it does not answer in time.
    """
    temporary, logs = folder / "temporary", folder / "logs"
    temporary.mkdir(exist_ok=True)
    logs.mkdir(exist_ok=True)
    environment = os.environ | {
        "TEMP": str(temporary),
        "TMPDIR": str(temporary),
        "LOG_LOCATION": str(logs),
        "METRICS_LOCATION": str(logs),
        "PATH": f"{python.parent}:{os.environ['PATH']}",
    }
    environment.pop("PYTHONPATH", None)  # our folders are no business of its workers
    command = [
        str(python), "-m", "ts.model_server", "--start", "--foreground", "--enable-model-api",
        "--model-store", str(store), "--ts-config", str(config), *flags,
    ]  # fmt: skip
    output = folder / "output.log"
    with output.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    inference, management = ("127.0.0.1", ports["inference"]), ("127.0.0.1", ports["management"])
    private = {
        str(store): "<store>",
        str(temporary): "<temporary>",
        str(folder): "<folder>",
        str(python.parent.parent): "<environment>",
        socket.gethostname(): "<host>",
    } | {str(port): f"<{name} port>" for name, port in ports.items()}
    try:
        _await_start(process, inference, output)
        _await_start(process, management, output)
        yield Side(inference, management, ("127.0.0.1", ports["metrics"]), private)
    finally:
        _stop(process)


def _tokens(folder: Path) -> dict[str, str]:
    """Read the keys that TorchServe has made, in the directory that it was started in."""
    keys = json.loads((folder / "key_file.json").read_text())
    return {f"<{name} token>": keys[name]["key"] for name in ("inference", "management")}


def _await_start(process: subprocess.Popen[bytes], address: Address, output: Path) -> None:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            answer, line = talk(address, b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", 5.0)
            line.closed(answer)
            return
        time.sleep(0.2)
    tail = "\n".join(output.read_text(errors="replace").splitlines()[-20:])
    raise DidNotStart(f"TorchServe did not start:\n{tail}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the launcher, the Java process and the workers: they are one process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP)
