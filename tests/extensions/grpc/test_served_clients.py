"""Clients by reflection, and the calls of Kubernetes' probes: a program with an environment of its own."""

from pathlib import Path

from tests.e2e.served import Served
from tests.e2e.test_clients import check_client


def test_every_call_without_stubs_does_as_it_should(idle: Served) -> None:
    check_client(idle, Path(__file__).parent / "clients/grpcio.py")
