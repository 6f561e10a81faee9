"""A connection too many: it is told so, and closed before it says anything.

Descriptors are what a daemon runs out of first. Those that clients may not have are for the control socket, for
workers and for files: so an operator is heard, and a worker is replaced, however many clients there are.
"""

import asyncio
from typing import cast

from daemon.errors import DaemonError
from daemon.http.messages import error_response, new_request_id

KEPT = 128  # descriptors that no client gets, or half of few; an idle daemon has 26, and a worker 4


class TooManyConnections(DaemonError):
    """Clients have as many connections as they may."""

    status = 503
    kind = "ServiceUnavailableException"
    retry_after = 1

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"There are {limit} connections, as many as the limit of open files allows (`ulimit -n`). Try again later."
        )


def connections_within(files: int) -> int:
    """How many connections clients may have, of so many open files."""
    return max(1, files - min(KEPT, files // 2))


class Full(asyncio.Protocol):
    """Args: `limit`, of connections."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        response = error_response(TooManyConnections(self._limit))
        out = cast(asyncio.Transport, transport)
        out.write(response.head(new_request_id(), keep_alive=False) + response.body)
        out.close()
