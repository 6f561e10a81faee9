"""`POST /tsctl/upgrade`: replace the daemon by a new process; only on the control socket.

By query: `grace` and `timeout` in seconds, `python` (the interpreter with the tsctl of the new
daemon; by default the old daemon's), `check_memory` (true or false).
"""

from collections.abc import Awaitable, Callable
from typing import Any

from tsctl.daemon.api.management.commands import Parameters, run
from tsctl.daemon.core.errors import MethodNotAllowed, ResourceNotFound
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.router import Route
from tsctl.daemon.models.archives.opening import Progress


def upgrade_route(upgrade: Callable[..., Awaitable[dict[str, Any]]]) -> Route:
    """Return the route; `upgrade` is `Upgrade` (lifecycle/upgrade/old.py)."""

    async def answer(exchange: Exchange, **asked: Any) -> None:
        async def command(progress: Progress) -> tuple[int, dict[str, Any]]:
            return 200, await upgrade(progress, **asked)

        await run(exchange, command)

    def route(exchange: Exchange, path: list[str]) -> Any:
        if path != ["upgrade"]:
            raise ResourceNotFound  # at once: what else is below /tsctl has a route of its own
        if exchange.request.method != "POST":
            raise MethodNotAllowed
        given = Parameters(exchange.request)
        return answer(
            exchange,
            grace=given.number("grace"),
            timeout=given.number("timeout"),
            python=given.text("python"),
            check_memory=given.boolean("check_memory") is not False,
        )

    return route
