"""Clients that ask without a pause, while something is done to the daemon."""

import http.client
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from tests.e2e.served import Served


class Seen(NamedTuple):
    """One request: when it began, and what came back; an exception, or a connection that is closed, is status 0."""

    began: float
    status: int
    told: str


class Load:
    """Clients that ask one after the other, each on a connection that it keeps."""

    def __init__(self, served: Served, target: str, clients: int = 8) -> None:
        self.seen: list[list[Seen]] = [[] for _ in range(clients)]
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(served, target, seen)) for seen in self.seen]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    def __iter__(self) -> Iterator[Seen]:
        return (each for client in self.seen for each in client)

    @property
    def failures(self) -> list[Seen]:
        return [each for each in self if each.status != 200]

    def after(self, moment: float) -> bool:
        """Whether each client has had an answer to a request that began after a moment."""
        return all(seen and seen[-1].began > moment for seen in self.seen)

    def _ask(self, served: Served, target: str, seen: list[Seen]) -> None:
        connection = served.connect()
        while not self._done.is_set():
            began = time.monotonic()
            try:
                connection.request("POST", target, b"x")
                response = connection.getresponse()
                seen.append(Seen(began, response.status, response.read().decode()))
                if response.getheader("Connection") == "close":
                    seen.append(Seen(began, 0, "the connection was closed"))
            except (OSError, http.client.HTTPException) as error:
                seen.append(Seen(began, 0, repr(error)))
                connection.close()
        connection.close()
