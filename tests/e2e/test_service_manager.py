"""Under a service manager: what it is told, its sockets, restarts and upgrades. service_manager.py plays its part, and
test_systemd.py has a real one."""

import json
import os
import signal
from collections.abc import Iterator
from functools import partial

import pytest

from tests.e2e.load import Connecting, repeating
from tests.e2e.served import PATIENCE, Served, connects, eventually, running
from tests.e2e.service_manager import ServiceManager, service_manager
from tests.lab.harness.daemon import command_of


@pytest.fixture
def manager(idle: Served) -> Iterator[ServiceManager]:
    with service_manager(idle) as made:
        yield made


def status_of(manager: ServiceManager) -> str:
    return next((value for name, value in reversed(manager.heard) if name == "STATUS"), "")


@pytest.mark.thin
def test_the_manager_is_told_of_each_step_and_its_socket_is_used(idle: Served, manager: ServiceManager) -> None:
    process = manager.start("--grace", "7", watchdog=1.0)
    assert idle.url == f"http://{manager.address}"
    assert idle.ask("/live").status == 200

    idle.register("echo")

    manager.wait(lambda: "1 model with 1 of 1 workers" in status_of(manager), "the status is told")
    fed = manager.heard.count(("WATCHDOG", "1"))
    manager.wait(lambda: manager.heard.count(("WATCHDOG", "1")) > fed + 2, "the watchdog is fed")
    process.send_signal(signal.SIGTERM)
    manager.wait(lambda: ("STOPPING", "1") in manager.heard, "the stop is told")
    assert ("EXTEND_TIMEOUT_USEC", "29000000") in manager.heard
    assert process.wait(PATIENCE) == 0


def test_a_connection_waits_while_the_daemon_restarts(idle: Served, manager: ServiceManager) -> None:
    first = manager.start()
    idle.register("echo")
    first.send_signal(signal.SIGTERM)
    assert first.wait(PATIENCE) == 0

    waiting = idle.connect()
    waiting.request("POST", "/predictions/echo", b"hello")  # connects: the manager listens
    manager.start()

    assert waiting.getresponse().status == 200
    waiting.close()


def test_restarts_refuse_no_connection(idle: Served, manager: ServiceManager) -> None:
    process = manager.start()

    clients = Connecting(partial(idle.ask, "/live", method="GET"))

    with repeating(clients.once):
        for _ in range(3):
            before = clients.answered
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
            process = manager.start()
            manager.wait(partial(clients.went_on, before), "a client is answered")

    assert clients.refused == 0
    assert clients.closed <= 3


def test_after_an_upgrade_the_new_daemon_speaks_and_the_main_process_ends_with_it(
    idle: Served, manager: ServiceManager
) -> None:
    main = manager.start(watchdog=1.0)
    idle.register("echo")

    upgraded = json.loads(idle.tsctl("upgrade", "--grace", "0", "--json"))

    new = upgraded["new"]["pid"]
    assert new != main.pid
    manager.heard.clear()
    manager.wait(lambda: manager.heard.count(("WATCHDOG", "1")) > 2, "the new daemon feeds the watchdog")
    assert idle.ask("/predictions/echo", b"x").status == 200
    assert main.poll() is None
    main.send_signal(signal.SIGTERM)
    manager.wait(lambda: ("STOPPING", "1") in manager.heard, "the new daemon tells its stop")
    assert main.wait(PATIENCE) == 0
    assert not running(new)
    assert connects(idle)


@pytest.mark.parametrize("upgraded", [False, True], ids=["started by the manager", "after an upgrade"])
def test_the_watchdogs_signal_ends_the_daemon_and_shows_where_its_loop_stands(
    idle: Served, manager: ServiceManager, *, upgraded: bool
) -> None:
    main = manager.start(watchdog=60.0)
    if upgraded:
        idle.tsctl("upgrade", "--grace", "0")
        eventually(lambda: "shim.py" in command_of(main.pid), "the old daemon has become the stand-in")
    daemon = idle.pid

    os.kill(main.pid, signal.SIGABRT)

    _, said = main.communicate(timeout=PATIENCE)
    assert main.returncode in (-signal.SIGABRT, 128 + signal.SIGABRT)
    assert not running(daemon)
    assert "Fatal Python error: Aborted" in said
    assert "daemon/__main__.py" in said


def test_a_socket_at_an_address_that_is_not_the_daemons_is_an_error_with_its_remedy(
    idle: Served, manager: ServiceManager
) -> None:
    idle.environment["TSCTL_INFERENCE_ADDRESS"] = "127.0.0.1:0"

    refused = manager.launch()

    _, said = refused.communicate(timeout=PATIENCE)
    assert refused.returncode == 1
    assert f"passed on a socket at `{manager.address}` (`web.socket`), which is no address of this daemon" in said
    assert f"hint: name it with `--inference-address {manager.address}`, or take it out of the socket unit" in said
