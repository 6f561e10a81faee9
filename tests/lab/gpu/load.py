"""One run of the load generator of `tsctl bench`: a closed loop of clients over connections that stay."""

import json
import subprocess
from dataclasses import dataclass
from typing import Any

import msgspec

from tests.lab.benchmarks.environments import ROOT
from tsctl.generator import GENERATOR
from tsctl.loadgen.order import LoadOrder


@dataclass(frozen=True, slots=True)
class Load:
    """The results; latencies in seconds.

    Attributes:
        rate: good answers a second.
        errors: requests without a good answer.
    """

    rate: float
    errors: int
    p50: float
    p99: float


def run(port: int, target: str, body: bytes, clients: int, seconds: float) -> Load:
    """Send `body` for so many seconds.

    Raises:
        RuntimeError: the generator did not run; the message is its own.
    """
    order = LoadOrder(
        host="127.0.0.1", port=port, target=target, body_bytes=len(body), connections=clients, seconds=seconds
    )
    with subprocess.Popen(
        [part for part in GENERATOR if part != "-P"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as generator:
        assert generator.stdin is not None
        assert generator.stdout is not None
        generator.stdin.write(msgspec.json.encode(order) + b"\n" + body)
        generator.stdin.flush()  # not closed: the end of stdin breaks the run off
        last: dict[str, Any] = {}
        for line in generator.stdout:
            last = json.loads(line)
            if last["stage"] != "running":
                break
        generator.stdin.close()
    if last.get("stage") != "done":
        raise RuntimeError(f"the load generator did not run: {last}")
    latency = last["latency"]
    return Load(last["requestsPerSecond"], last["errors"], latency["p50"], latency["p99"])
