"""Clients of others, unchanged: each a program with an environment of its own (`python -m tests.lab clients`)."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.served import Served
from tests.e2e.tensor_models import register, register_beside
from tests.kit.shelf import modules
from tsctl.daemon.model_settings.declarations import DATATYPES

CLIENTS = Path(__file__).parent / "clients"
ENVIRONMENTS = Path(__file__).parents[2] / ".clients"


def check_client(idle: Served, program: Path) -> None:
    """Run a client's program in its environment; skip the test where that is not there.

    Its arguments are the address of HTTP, and those of protocols of extensions: `arguments_of` in
    tests/extensions/NAME/addresses.py returns options of the daemon, and arguments of the program.
    """
    client = program.stem
    python = ENVIRONMENTS / client / "bin/python"
    if not python.exists():
        pytest.skip(f"`python -m tests.lab clients` installs the client of {client}")
    further = [each.arguments_of(idle) for each in modules("addresses")]
    idle.start("--max-request-size", "8MiB", *(option for options, _ in further for option in options))
    for datatype in DATATYPES:
        register(idle, datatype, f"{client}-{datatype.lower()}")
    idle.register("chats")
    register_beside(idle)

    done = subprocess.run(
        [python, program, idle.url.removeprefix("http://"), *(said for _, arguments in further for said in arguments)],
        capture_output=True,
        text=True,
        timeout=idle.patience,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("every call did as it should\n")


@pytest.mark.parametrize("client", ["triton", "kserve"])
def test_every_call_of_a_client_does_as_it_should(idle: Served, client: str) -> None:
    check_client(idle, CLIENTS / f"{client}.py")
