"""A start waits for its models, and names what it has started."""

from typing import Any, cast

import pytest

from tests.tsctl.conftest import Invoke
from tsctl import launch
from tsctl.commands import start


class Registering:
    """Answers with the models that are still being registered, one fewer each time."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)

    def json(self, method: str, target: str) -> dict[str, list[str]]:
        assert (method, target) == ("GET", "/tsctl/status")
        names, self.names = list(self.names), self.names[1:]
        return {"registering": names}


@pytest.mark.parametrize(("names", "waiting", "paused"), [("ab", "", 0.06), ("abcdefgh", "defgh", 0.14)])
def test_a_start_waits_until_its_models_are_registered_but_not_for_ever(
    names: str, waiting: str, paused: float
) -> None:
    pauses: list[float] = []

    assert launch.await_models(cast("Any", Registering(*names)), pauses.append, patience=0.1) == list(waiting)
    assert pauses[:2] == [0.02, 0.04] and sum(pauses) == pytest.approx(paused)


def test_a_start_names_the_services_that_have_an_address_of_their_own() -> None:
    one, other = "http://127.0.0.1:8081", "http://127.0.0.1:8082"

    both = {"grpcAddresses": ["grpc://a"], "grpcManagementAddresses": ["grpc://b"]}
    shared = launch.further_addresses({"managementAddress": one, "metricsAddress": one} | both)

    assert shared == [("management", one), ("gRPC", "grpc://a"), ("gRPC management", "grpc://b")]
    assert launch.further_addresses({"managementAddress": None, "metricsAddress": other}) == [("metrics", other)]


def test_a_state_directory_of_a_user_that_is_none_is_refused(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSCTL_STATE_DIR", "~nobody.at.all/x")

    result = invoke("start")

    assert (result.exit_code, result.stderr) == (
        1, "error: TSCTL_STATE_DIR: `~nobody.at.all/x` begins with an unknown user\n"
    )  # fmt: skip


def test_a_start_prints_its_addresses_below_one_another(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    status = {"pid": 7, "socket": "/run/s", "started": 0.0, "inferenceAddress": None}
    monkeypatch.setattr(start, "start", lambda *_: status | {"grpcManagementAddresses": ["grpc://b"]})
    monkeypatch.setattr(start, "await_models", lambda *_: [])
    monkeypatch.setattr(start, "lost_models", lambda *_: [])

    assert invoke("start").stdout.splitlines() == [
        "predictions      on the control socket", "gRPC management  grpc://b", "control          /run/s",
    ]  # fmt: skip
