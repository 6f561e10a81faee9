"""The real TorchServe as one of the two sides: what it answers to cases that have no answer yet."""

import base64
import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.lab.benchmarks.environments import environment
from tests.lab.benchmarks.peers.peer import DidNotStart, Running, free_port, spawn
from tests.lab.benchmarks.peers.torchserve import PACKAGES, require_java
from tests.lab.conformance.case import CASES, Group
from tests.lab.conformance.models import pack
from tests.lab.conformance.side import Side
from tests.lab.conformance.talk import Answer, talk
from tests.lab.conformance.variants import Variant

START = 90.0  # seconds that the Java process may take to listen
_HTTP = ("inference", "management", "metrics")
_GRPC = ("grpc_inference", "grpc_management")


def record(group: Group, side: Side) -> int:
    """Write TorchServe's answers to the cases of a group that lack one into its file; return how many there are."""
    cases = [case for case in group.cases if any(step.recorded is None for step in case.steps)]
    if not cases:
        return 0
    file = CASES / f"{group.name}.json"
    document = json.loads(file.read_text())
    for name, answers in side.ask_all(group, cases).items():
        for step, answer in zip(document["cases"][name]["steps"], answers, strict=True):
            step["answer"] = _written(answer)
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return len(cases)


def _written(answer: Answer) -> dict[str, Any]:
    try:
        body = {"body": answer.body.decode()}
    except UnicodeDecodeError:
        body = {"base64": base64.b64encode(answer.body).decode()}
    return {
        "status": answer.status, "reason": answer.reason, "headers": list(answer.headers), **body,
        "closed": answer.closed,
    }  # fmt: skip


@contextlib.contextmanager
def real_torchserve(folder: Path, variant: Variant) -> Iterator[Side]:
    """Run TorchServe with the archives in its store while the block lasts; `folder` is empty.

    Raises:
        Missing: there is no Java, or pip could not install it.
        DidNotStart: it does not answer in time.
    """
    require_java()
    python = environment("torchserve", PACKAGES)
    store, temporary, logs = folder / "store", folder / "temporary", folder / "logs"
    for each in (store, temporary, logs):
        each.mkdir()
    pack(store)
    ports = {name: free_port() for name in (*_HTTP, *_GRPC)}
    config = folder / "config.properties"
    config.write_text(
        variant.config(
            **{f"{name}_address": f"http://127.0.0.1:{ports[name]}" for name in _HTTP},
            **{f"{name}_port": ports[name] for name in _GRPC},
        )
    )
    running = Running(
        spawn(
            [
                python, "-m", "ts.model_server", "--start", "--foreground", "--enable-model-api", "--ncs",
                "--model-store", store, "--ts-config", config, *([] if variant.tokens else ["--disable-token-auth"]),
            ],
            folder,
            {
                "TEMP": str(temporary), "TMPDIR": str(temporary), "LOG_LOCATION": str(logs),
                "METRICS_LOCATION": str(logs), "PATH": f"{python.parent}:{os.environ['PATH']}",
                "PYTHONPATH": "",  # our folders are no business of its workers
            },
        ),
        ports["inference"], "", folder / "output.log", ("model_service_worker",),
    )  # fmt: skip
    private = {
        str(store): "<store>", str(temporary): "<temporary>", str(folder): "<folder>",
        str(python.parent.parent): "<environment>", socket.gethostname(): "<host>",
    } | {str(port): f"<{name} port>" for name, port in ports.items()}  # fmt: skip
    try:
        for name in ("inference", "management"):
            _await_start(running, ports[name])
        inference, management, metrics = (("127.0.0.1", ports[name]) for name in _HTTP)
        keys = json.loads((folder / "key_file.json").read_text()) if variant.tokens else {}
        tokens = {f"<{name} token>": keys[name]["key"] for name in ("inference", "management") if keys}
        yield Side(inference, management, metrics, private, tokens)
    finally:
        running.stop()


def _await_start(running: Running, port: int) -> None:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline and running.process.poll() is None:
        with contextlib.suppress(OSError):
            answer, line = talk(("127.0.0.1", port), b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", 5.0)
            line.closed(answer)
            return
        time.sleep(0.2)
    tail = "\n".join(running.output.read_text(errors="replace").splitlines()[-20:])
    raise DidNotStart(f"TorchServe did not start:\n{tail}")
