"""Start and stop the real TorchServe, on ports and in folders of its own."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
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
    ports = dict(zip((*_HTTP, *_GRPC), _free_ports(5), strict=True))
    config = folder / "config.properties"
    addresses = {
        f"{name}_address": f"http://127.0.0.1:{ports[name]}" for name in ("inference", "management", "metrics")
    }
    config.write_text(variant.config(**addresses, **{f"{name}_port": ports[name] for name in _GRPC}))
    temporary, logs = folder / "temporary", folder / "logs"
    temporary.mkdir()
    logs.mkdir()
    environment = os.environ | {
        "TEMP": str(temporary),
        "TMPDIR": str(temporary),
        "LOG_LOCATION": str(logs),
        "METRICS_LOCATION": str(logs),
        "PATH": f"{python.parent}:{os.environ['PATH']}",
    }
    environment.pop("PYTHONPATH", None)  # our folders are no business of its workers
    command = [
        str(python), "-m", "ts.model_server", "--start", "--foreground", "--ncs", "--enable-model-api",
        "--model-store", str(store), "--ts-config", str(config), *([] if variant.tokens else ["--disable-token-auth"]),
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
        tokens = _tokens(folder) if variant.tokens else {}
        yield Side(inference, management, ("127.0.0.1", ports["metrics"]), private, tokens)
    finally:
        _stop(process)


def _tokens(folder: Path) -> dict[str, str]:
    """Read the keys that TorchServe has made, in the directory that it was started in."""
    keys = json.loads((folder / "key_file.json").read_text())
    return {f"<{name} token>": keys[name]["key"] for name in ("inference", "management")}


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


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
