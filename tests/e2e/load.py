"""Clients that ask without a pause, and what else goes on beside, while something is done to the daemon."""

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from tests.e2e.served import Served


@contextmanager
def repeating(*works: Callable[[], object], every: float = 0.0) -> Iterator[None]:
    """Call each function again and again, in a thread of its own, while the block runs; what one raises is raised.

    Args:
        every: seconds before each call.
    """
    over = threading.Event()

    def repeat(work: Callable[[], object]) -> None:
        while not over.wait(every):
            work()

    with ThreadPoolExecutor(len(works)) as threads:
        running = [threads.submit(repeat, work) for work in works]
        try:
            yield
        finally:
            over.set()
    for each in running:
        each.result()


class Connecting:
    """Opens a connection for each request, and counts what becomes of them."""

    def __init__(self, ask: Callable[[], object]) -> None:
        self.answered = self.refused = self.closed = 0
        self._ask = ask

    def once(self) -> None:
        try:
            self._ask()
            self.answered += 1
        except ConnectionRefusedError:
            self.refused += 1
        except (OSError, http.client.HTTPException):
            self.closed += 1  # accepted by a daemon that was told to stop, or killed, before it had read the request

    def went_on(self, before: int) -> bool:
        return self.answered > before


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
