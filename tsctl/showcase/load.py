"""The clients of the demo: the load generator, asking over the control socket."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tsctl.errors import CliError
from tsctl.generator import Generator, failure_texts, generator

TIMEOUT = 30.0  # seconds


def order_for(socket: Path, model: str, clients: int, seconds: float | None) -> dict[str, Any]:
    """Return an order: each client sends its next request after its answer; without an end if `seconds` is None."""
    return {
        "unix": str(socket), "target": f"/predictions/{model}", "connections": clients, "seconds": seconds,
        "timeout": TIMEOUT,
    }  # fmt: skip


class AskingClients:
    """Clients that go on asking until the end of a block.

    Args:
        told: called in another thread with the requests answered and failed so far, five times a second.

    Attributes:
        failures: of each kind, with their counts; known at the end.
    """

    def __init__(self, running: Generator, told: Callable[[int, int], None]) -> None:
        self.failures: list[str] = []
        self._running = running
        self._told = told
        self._broken: CliError | None = None
        self._thread = threading.Thread(target=self._read, name="clients", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise if the clients have ended by themselves.

        Raises:
            CliError: the first request failed, or the load generator did.
        """
        if self._broken is not None:
            raise self._broken

    def stop(self) -> None:
        """Stop asking, and wait for the last answers."""
        self._running.break_off()
        self._thread.join()
        self.check()

    def _read(self) -> None:
        try:
            for event in self._running.events():
                self._told(event["requests"] - event["errors"], event["errors"])
                if event["stage"] == "done":
                    self.failures = failure_texts(event)
        except CliError as error:
            self._broken = error
        except (OSError, ValueError):  # the demo is ending, and has closed the pipe
            self._broken = CliError("the load generator was stopped")


@contextlib.contextmanager
def clients(order: dict[str, Any], body: bytes, told: Callable[[int, int], None]) -> Iterator[AskingClients]:
    """Keep clients asking within the block."""
    with generator(order, body) as running:
        yield AskingClients(running, told)
