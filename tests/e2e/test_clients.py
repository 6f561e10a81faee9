"""Clients of others, unchanged: each a program with an environment of its own (`python -m tests.lab clients`)."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.served import Served, free_address
from tests.e2e.tensor_models import register
from tsctl.daemon.model_settings.declarations import DATATYPES

CLIENTS = Path(__file__).parent / "clients"
ENVIRONMENTS = Path(__file__).parents[2] / ".clients"


def check_client(idle: Served, program: Path) -> None:
    """Run a client's program in its environment; skip the test where that is not there."""
    client = program.stem
    python = ENVIRONMENTS / client / "bin/python"
    if not python.exists():
        pytest.skip(f"`python -m tests.lab clients` installs the client of {client}")
    calls, management, token = free_address(), free_address(), idle.folder / "token"
    token.touch(0o600)
    token.write_text("secret")
    idle.start(
        "--grpc-address", calls, "--max-request-size", "8MiB",
        "--grpc-management-address", management, "--token-file", str(token),
    )  # fmt: skip
    for datatype in DATATYPES:
        register(idle, datatype, f"{client}-{datatype.lower()}")
    idle.register("chats")

    done = subprocess.run(
        [python, program, idle.url.removeprefix("http://"), calls, management, "secret"],
        capture_output=True,
        text=True,
        timeout=idle.patience,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("every call did as it should\n")


@pytest.mark.parametrize("client", ["triton", "kserve", "grpcio"])
def test_every_call_of_a_client_does_as_it_should(idle: Served, client: str) -> None:
    check_client(idle, CLIENTS / f"{client}.py")
