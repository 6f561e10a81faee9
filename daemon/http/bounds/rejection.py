"""Reject a connection beyond the limit, where no idle one makes room: answer 503 and close, before any request is read.

File descriptors are the first resource that a daemon runs out of. Some are reserved for the control socket, for
workers and for files: so operators can connect, and workers are replaced, however many clients there are.
"""

import asyncio
from typing import cast

from tsctl.daemon.core.errors import LimitReached
from tsctl.daemon.http.messages import error_response, new_request_id

KEPT = 128  # descriptors that no client gets, or half of few; an idle daemon has 26, and a worker 4


class TooManyConnections(LimitReached):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"Too many connections: the limit of open files (`ulimit -n`) allows {limit}. Try again later."
        )


def connections_within(files: int) -> int:
    """Return how many client connections fit into `files` open files."""
    return max(1, files - min(KEPT, files // 2))


class RejectingProtocol(asyncio.Protocol):
    """Answers 503, and closes the connection.

    Args:
        limit: of connections.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        response = error_response(TooManyConnections(self._limit))
        out = cast(asyncio.Transport, transport)
        out.write(response.head(new_request_id(), keep_alive=False) + response.body)
        out.close()
