"""`POST /tsctl/upgrade`: replace the daemon by a new process; only on the control socket.

By query: `grace` and `timeout` in seconds, `python` (the interpreter with the tsctl of the new
daemon; by default the old daemon's), `check_memory` (true or false).
"""

from collections.abc import Awaitable, Callable
from typing import Any

from tsctl.daemon.api.management.commands import Parameters, run, word_routes
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.router import Route
from tsctl.daemon.model_settings.kinds import Boolean, Duration
from tsctl.daemon.models.archives.opening import Progress


def upgrade_routes(upgrade: Callable[..., Awaitable[dict[str, Any]]]) -> dict[str, Route]:
    """Return the route; `upgrade` is `Upgrade` (lifecycle/upgrade/old.py)."""

    async def answer(exchange: Exchange) -> None:
        given = Parameters(exchange.request)
        asked = {
            "grace": given.read("grace", Duration()),
            "timeout": given.read("timeout", Duration()),
            "python": given.text("python"),
            "check_memory": given.read("check_memory", Boolean()) is not False,
        }

        async def command(progress: Progress) -> tuple[int, dict[str, Any]]:
            return 200, await upgrade(progress, **asked)

        await run(exchange, command)

    return word_routes({"upgrade": answer}, "POST")
