"""`tsctl doctor` and `tsctl start` agree: what the one calls a problem, the other fails of."""

import json
import socket
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.served import Served


def problems(served: Served) -> list[str]:
    """Return the checks that found a problem; the exit code must say the same."""
    served.environment["CUDA_VISIBLE_DEVICES"] = ""  # no GPU of this machine is tried, which takes seconds
    done = served.run("doctor", "--json")
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    found = [each["check"] for each in document["checks"] if each["state"] == "problem"]
    assert (done.returncode, document["serves"]) == ((1, False) if found else (0, True)), done.stderr
    assert all(each["remedy"] for each in document["checks"] if each["state"] != "ok")
    return found


@pytest.fixture
def taken() -> Iterator[str]:
    """An address in use."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def no_store(served: Served, _taken: str) -> None:
    served.environment["TSCTL_MODEL_STORE"] = str(served.folder / "none")


def state_is_a_file(served: Served, _taken: str) -> None:
    (served.folder / "state").touch()


def port_in_use(served: Served, taken: str) -> None:
    served.environment["TSCTL_INFERENCE_ADDRESS"] = taken


def foreign_address(served: Served, _taken: str) -> None:
    served.environment["TSCTL_INFERENCE_ADDRESS"] = "192.0.2.1:8080"  # for documentation (RFC 5737)


def invalid_setting(served: Served, _taken: str) -> None:
    served.environment["TSCTL_QUEUE_JOBS"] = "many"


def open_socket_directory(served: Served, _taken: str) -> None:
    served.environment |= {
        "XDG_RUNTIME_DIR": str(served.folder), "TSCTL_SOCKET": str(served.folder / "tsctl" / "control.sock"),
    }  # fmt: skip
    (served.folder / "tsctl").mkdir()
    (served.folder / "tsctl").chmod(0o755)


@pytest.mark.parametrize(
    ("spoil", "check"),
    [
        (no_store, "configuration"), (state_is_a_file, "permissions"), (port_in_use, "addresses"),
        (foreign_address, "addresses"), (invalid_setting, "configuration"), (open_socket_directory, "permissions"),
    ],
)  # fmt: skip
def test_what_is_a_problem_keeps_the_daemon_from_starting(
    idle: Served, taken: str, spoil: Callable[[Served, str], None], check: str
) -> None:
    spoil(idle, taken)

    assert problems(idle) == [check]
    assert idle.run("start").returncode == 1


@pytest.mark.thin
def test_a_daemon_that_starts_had_no_problem_and_has_none(idle: Served) -> None:
    before = problems(idle)
    idle.start()

    assert before == problems(idle) == []
