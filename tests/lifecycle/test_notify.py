"""The service manager is told what sd_notify(3) says, by the event loop; without one nothing runs."""

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.build import make_model
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.lifecycle.notify import Notifier, every, message, notifier_of, status_of
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.workers.stub import StubEngine

PID = 4711


class Manager:
    """The receiving end of NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self.socket.setblocking(False)

    def heard(self) -> list[dict[str, str]]:
        """Return the messages since the last call."""
        messages: list[dict[str, str]] = []
        while True:
            try:
                text = self.socket.recv(4096).decode()
            except BlockingIOError:
                return messages
            messages.append(dict(line.split("=", 1) for line in text.splitlines()))


def fill(place: str) -> None:
    """Send until the receiver has no room; a sender alone may run out of its own buffer before."""
    for _ in range(1000):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            for sent in range(1000):
                try:
                    sender.sendto(b"X=1", place)
                except BlockingIOError:
                    if sent == 0:
                        return
                    break
    pytest.fail("the receiver takes everything")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "notify")


@pytest.fixture
def manager(place: str) -> Iterator[Manager]:
    made = Manager(place)
    yield made
    made.socket.close()


def test_a_status_is_told_when_it_changes(place: str, manager: Manager, clock: FakeClock) -> None:
    lines = ["one model", "one model", "two models"]
    notifier = Notifier(place)
    notifier.report_ready(clock, lambda: lines.pop(0))
    assert manager.heard() == [{"READY": "1"}, {"STATUS": "one model"}]

    clock.advance(5.0)
    assert manager.heard() == []
    clock.advance(5.0)

    assert manager.heard() == [{"STATUS": "two models"}]
    notifier.close()


def test_the_loop_feeds_the_watchdog_twice_in_its_time(place: str, manager: Manager, clock: FakeClock) -> None:
    notifier = Notifier(place, watchdog=4.0)
    notifier.report_ready(clock, str)
    manager.heard()

    clock.advance(8.0)

    assert manager.heard() == [{"WATCHDOG": "1"}] * 4
    notifier.close()


def test_a_replaced_daemon_is_silent(place: str, manager: Manager, clock: FakeClock) -> None:
    notifier = Notifier(place, watchdog=4.0)
    notifier.report_ready(clock, str)
    manager.heard()

    notifier.close()
    clock.advance(60.0)
    notifier.stopping(30.0)

    assert manager.heard() == []


def test_a_stop_takes_as_long_as_the_grace_time_says_and_keeps_its_status(
    place: str, manager: Manager, clock: FakeClock
) -> None:
    notifier = Notifier(place)
    notifier.report_ready(clock, lambda: "Serving")
    manager.heard()

    notifier.stopping(30.0)
    clock.advance(60.0)

    status = "Stopping; running requests have 30 s"
    assert manager.heard() == [{"STOPPING": "1", "STATUS": status, "EXTEND_TIMEOUT_USEC": "75000000"}]
    notifier.close()


def test_an_abstract_address_begins_with_an_at(clock: FakeClock, tmp_path: Path) -> None:
    address = f"@tsctl-test-{tmp_path.name}-{tmp_path.stat().st_ino}"
    manager, notifier = Manager(address), Notifier(address)

    notifier.report_ready(clock, str)

    assert manager.heard() == [{"READY": "1"}]
    notifier.close()
    manager.socket.close()


def test_what_the_manager_has_no_room_for_goes_with_the_next_message(
    place: str, manager: Manager, clock: FakeClock
) -> None:
    fill(place)
    notifier = Notifier(place, watchdog=10.0)
    notifier.report_ready(clock, str)
    assert {"READY": "1"} not in manager.heard()

    clock.advance(5.0)

    assert manager.heard() == [{"READY": "1", "WATCHDOG": "1"}]
    notifier.close()


def test_a_manager_that_is_not_there_is_named_once(
    place: str, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    notifier = Notifier(place)

    with caplog.at_level(logging.WARNING):
        notifier.report_ready(clock, lambda: "Serving")
        clock.advance(60.0)

    (record,) = caplog.records
    assert f"cannot tell the service manager at `{place}`: No such file" in record.getMessage()


def test_without_a_manager_no_timer_is_set(clock: FakeClock) -> None:
    notifier = notifier_of({}, PID)

    notifier.report_ready(clock, lambda: pytest.fail("nobody asks for the status"))
    notifier.stopping(1.0)

    assert not clock.step()


@pytest.mark.parametrize(
    ("environment", "watchdog", "left"),
    [
        pytest.param(
            {"WATCHDOG_USEC": "4000000", "WATCHDOG_PID": "4711"}, 4.0, {"WATCHDOG_USEC": "4000000"},
            id="ours, and that of the daemon that replaces this one",
        ),
        pytest.param({"WATCHDOG_USEC": "4000000"}, 4.0, {"WATCHDOG_USEC": "4000000"}, id="inherited from the replaced"),
        pytest.param({"WATCHDOG_USEC": "4000000", "WATCHDOG_PID": "1"}, 0.0, {}, id="another process's"),
        pytest.param({"WATCHDOG_USEC": "soon"}, 0.0, {"WATCHDOG_USEC": "soon"}, id="no number"),
        pytest.param({}, 0.0, {}, id="none"),
    ],
)  # fmt: skip
def test_the_watchdog_is_the_one_meant_for_this_process(
    place: str, environment: dict[str, str], watchdog: float, left: dict[str, str]
) -> None:
    notifier = notifier_of(environment | {"NOTIFY_SOCKET": place}, PID)
    given = dict(environment)
    notifier_of(given, PID)

    assert notifier.watchdog == watchdog
    assert given == left
    notifier.close()


@pytest.mark.parametrize(
    ("watchdog", "seconds"),
    [
        pytest.param(0.0, 5.0, id="for the status alone"),
        pytest.param(3.0, 1.5, id="half of a short one"),
        pytest.param(60.0, 5.0, id="a long one does not delay the status"),
    ],
)
def test_every(watchdog: float, seconds: float) -> None:
    assert every(watchdog) == seconds


def test_a_value_cannot_be_an_assignment_of_its_own() -> None:
    assert message({"READY": "1", "STATUS": "model\nMAINPID=1"}) == b"READY=1\nSTATUS=model MAINPID=1"


def test_the_status_counts_models_and_workers(clock: FakeClock) -> None:
    registry, engine = Registry(), StubEngine(clock)
    assert status_of(registry, "http://127.0.0.1:8080") == "Serving no model yet, at http://127.0.0.1:8080"
    model = make_model(engine, clock)
    registry.add(model)
    model.pool.scale(2)

    late = status_of(registry, "here")
    assert late == "Serving 1 model with 0 of 2 workers, at here; 1 without a ready worker"
