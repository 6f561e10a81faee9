"""OpenAI's own Python client, unchanged: a program with an environment of its own (`python -m tests.lab clients`)."""

from pathlib import Path

from tests.e2e.served import Served
from tests.e2e.test_clients import check_client


def test_every_call_of_its_client_does_as_it_should(idle: Served) -> None:
    check_client(idle, Path(__file__).parent / "clients/openai.py")
