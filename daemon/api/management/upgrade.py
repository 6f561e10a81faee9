"""`POST /tsctl/upgrade`: replace the daemon by a new process; only on the control socket.

By query: `grace` and `timeout` in seconds, `python` (the interpreter with the tsctl of the new
daemon; by default the old daemon's), `check_memory` (true or false).
"""

from collections.abc import Awaitable, Callable
from typing import Any

from daemon.api.management.parameters import Parameters
from daemon.api.management.progress import run
from daemon.core.errors import MethodNotAllowed, ResourceNotFound
from daemon.http.exchange import Exchange
from daemon.http.router import Route
from daemon.lifecycle.upgrade.asked import GRACE, TIMEOUT, Asked
from daemon.models.archives.directories import Progress

Upgrade = Callable[[Asked, Progress], Awaitable[dict[str, Any]]]


def upgrade_route(upgrade: Upgrade) -> Route:
    """Return the route; `upgrade` returns the document of the answer, or raises a DaemonError."""

    async def answer(exchange: Exchange, asked: Asked) -> None:
        async def command(progress: Progress) -> tuple[int, dict[str, Any]]:
            return 200, await upgrade(asked, progress)

        await run(exchange, command)

    def route(exchange: Exchange, path: list[str]) -> Any:
        if path != ["upgrade"]:
            raise ResourceNotFound  # other paths below /tsctl have a route of their own
        if exchange.request.method != "POST":
            raise MethodNotAllowed
        given = Parameters(exchange.request)
        grace, timeout = given.number("grace"), given.number("timeout")
        return answer(
            exchange,
            Asked(
                GRACE if grace is None else grace,
                TIMEOUT if timeout is None else timeout,
                given.text("python"),
                given.boolean("check_memory") is not False,
            ),
        )

    return route
