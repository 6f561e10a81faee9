"""Asking for an upgrade; and what is refused while one is under way."""

import asyncio
from typing import Any

import pytest

from tests.http.peer import Server, get
from tsctl.daemon.api.management.upgrade import upgrade_routes
from tsctl.daemon.core.errors import UpgradeFailed
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.router import Router
from tsctl.daemon.models.archives.opening import Progress


def upgraded(target: str, method: str = "POST", failure: Exception | None = None) -> tuple[list[dict[str, Any]], int]:
    """Ask for an upgrade; give what was asked for, and the status of the answer."""
    asked: list[dict[str, Any]] = []

    async def upgrade(report: Progress, **wanted: Any) -> dict[str, Any]:
        asked.append(wanted)
        if failure is not None:
            raise failure
        return {}

    async def scenario() -> int:
        server = Server(Router(upgrade_routes(upgrade)))
        peer = server.connect()
        peer.send(get(target).replace(b"GET", method.encode()))
        exchange: Exchange = server.exchanges[0]
        while not exchange.done:  # noqa: ASYNC110 - what tests wait for has no event
            await asyncio.sleep(0)
        return exchange.status

    return asked, asyncio.run(scenario())


def test_what_is_asked_for_is_told() -> None:
    target = "/tsctl/upgrade?grace=2.5&timeout=60&python=/opt/python&check_memory=false"

    wanted = {"grace": 2.5, "timeout": 60.0, "python": "/opt/python", "check_memory": False}
    assert upgraded(target) == ([wanted], 200)
    unsaid = {"grace": None, "timeout": None, "python": None, "check_memory": True}
    assert upgraded("/tsctl/upgrade") == ([unsaid], 200)
    assert upgraded("/tsctl/upgrade", failure=UpgradeFailed("it died")) == ([unsaid], 500)


@pytest.mark.parametrize(
    ("target", "method", "status"),
    [
        ("/tsctl/upgrade", "GET", 405),
        ("/tsctl/upgrade/now", "POST", 404),
        ("/tsctl/status", "POST", 404),
        ("/tsctl/upgrade?grace=soon", "POST", 400),
        ("/tsctl/upgrade?check_memory=perhaps", "POST", 400),
    ],
)
def test_anything_else_asks_for_no_upgrade(target: str, method: str, status: int) -> None:
    assert upgraded(target, method) == ([], status)
