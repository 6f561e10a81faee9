"""gRPC at a real daemon: predictions, health, tokens, and its ends."""

import contextlib
import json
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.load import repeating
from tests.e2e.served import PATIENCE, Served, eventually, free_address
from tests.e2e.tensor_models import register
from tests.extensions.grpc.client import HEALTH, INFERENCE, grpc, prediction
from tests.extensions.grpc.http2 import ENDS_THE_LOOP
from tsctl.daemon.extensions.grpc.protos.messages import message_class

RETRIES = (  # what gRPC's clients repeat where they are told to
    '{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.1s",'
    ' "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}'
)


@pytest.fixture
def address() -> str:
    return free_address()


@pytest.fixture
def channel(address: str) -> Iterator[Any]:
    with grpc.insecure_channel(address, options=[("grpc.service_config", RETRIES)]) as made:
        yield made


def predict(channel: Any, request: Any, **options: Any) -> bytes:
    answer = channel.unary_unary(f"/{INFERENCE}/Predictions")(
        request.SerializeToString(), wait_for_ready=True, timeout=PATIENCE, **options
    )
    body: bytes = message_class("org.pytorch.serve.grpc.inference.PredictionResponse").FromString(answer).prediction
    return body


@pytest.mark.thin
def test_a_model_answers_over_grpc_as_over_http(idle: Served, address: str, channel: Any) -> None:
    idle.start("--grpc-address", address)
    idle.register("echo")

    answer = json.loads(predict(channel, prediction("echo", body=b"hello")))

    assert answer["row"] == idle.ask("/predictions/echo", body=b"hello").json["row"]
    check = channel.unary_unary(f"/{HEALTH}/Check")
    assert check(b"\x0a\x04echo", timeout=PATIENCE) == b"\x08\x01"
    assert f"grpc://{address}" in idle.tsctl("logs", "--daemon")
    eventually(
        lambda: f'"POST /{INFERENCE}/Predictions" 200' in idle.run("logs", "--access").stdout, "the access log has it"
    )


def test_upgrades_under_load_fail_no_call_of_a_client_that_retries(idle: Served, address: str, channel: Any) -> None:
    idle.start("--grpc-address", address)
    idle.register("echo")
    answered, failed = [0, 0], []

    def client(number: int) -> None:
        try:
            predict(channel, prediction("echo", data=b"hello"))
            answered[number] += 1
        except grpc.RpcError as error:
            failed.append(f"{error.code()} {error.details()}")

    with repeating(partial(client, 0), partial(client, 1)):
        pids = [idle.pid]
        for _ in range(5):
            idle.tsctl("upgrade")
            pids.append(idle.pid)
            seen = sum(answered)
            eventually(lambda seen=seen: sum(answered) > seen + 20, "the new daemon answers")  # type: ignore[misc]

    assert failed == []
    assert len(set(pids)) == 6


def test_bench_loads_a_model_over_grpc_with_a_token(idle: Served, address: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o600)
    idle.start("--grpc-address", address, "--inference-token-file", str(token))
    register(idle, "FP32", "benched")
    (tmp_path / "elements").write_bytes(bytes(400))

    for rate in ((), ("--rate", "200")):
        told = idle.run(
            "bench", "benched", str(tmp_path / "elements"), "--protocol", "grpc", "-n", "50", *rate, "--json"
        )
        assert (told.returncode, "Warning" in told.stderr) == (0, False), told.stderr
        found = json.loads(told.stdout)
        assert (found["statuses"], found["errors"], found["bodyBytes"] > 400) == ({"OK": 50}, 0, True)
    (tmp_path / "short").write_text(
        json.dumps({"inputs": [{"name": "y", "datatype": "FP32", "shape": [1], "data": [1]}]})
    )
    refused = idle.run("bench", "benched", str(tmp_path / "short"), "--protocol", "grpc", "-n", "1")
    assert (refused.returncode, "INVALID_ARGUMENT: " in refused.stderr) == (1, True)


def ended_again_and_again(address: str) -> AbstractContextManager[None]:
    """End gRPC's loop, before any token, as soon as it accepts a connection."""
    host, _, port = address.partition(":")

    def attack() -> None:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 0.5) as attacker:
            attacker.sendall(ENDS_THE_LOOP)
            attacker.recv(4096)

    return repeating(attack, every=0.02)


def test_an_end_of_grpcs_loop_is_told_and_the_next_call_is_answered(idle: Served, address: str, channel: Any) -> None:
    idle.start("--grpc-address", address)
    idle.register("echo")
    assert predict(channel, prediction("echo", body=b"before"))
    assert idle.ask("/ready", method="GET").status == 200
    name = f"gRPC {address}"

    with ended_again_and_again(address):
        eventually(lambda: idle.ask("/ready", method="GET").status == 503, "the daemon is not ready without gRPC")
        eventually(lambda: not idle.status["servers"][-1]["up"], "`tsctl status` shows it")
        assert idle.ask("/predictions/echo", b"meanwhile").status == 200

    def answered() -> bool:
        with contextlib.suppress(grpc.RpcError):  # the first may reach a server whose loop has just ended
            return bool(predict(channel, prediction("echo", body=b"after")))
        return False

    assert answered() or answered()
    eventually(lambda: idle.ask("/ready", method="GET").status == 200, "it is ready again")
    assert f"{name}: up again; ended " in idle.tsctl("status").replace("\n", " ")
    assert "UnicodeDecodeError" in idle.status["servers"][-1]["why"]
    events = [json.loads(line) for line in idle.tsctl("events", "--json").splitlines()]
    told = {event["kind"]: event["text"] for event in events}
    assert told["server-ended"].startswith(f"`{name}` has ended: UnicodeDecodeError")
    assert told["server-restarted"].startswith(f"`{name}` serves again")
    assert "internal-error" not in told
