"""Ask the daemon at intervals, in a thread: keys have their effect also while the daemon does not answer."""

import contextlib
import os
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from tsctl.client import DaemonClient
from tsctl.errors import CliError
from tsctl.extensions.live.figures import Document, Key

EVENTS = 10  # the latest ones that are asked for
RECENT = 3600.0  # seconds: of all models, only events since then


@dataclass(frozen=True, slots=True)
class News:
    """The answers of the daemon at one look.

    Attributes:
        live: the answer of `/tsctl/live`; None if the daemon did not answer.
        absent: why it did not; empty if it did.
        subject: the model that is shown alone; None while all are.
        events: the latest ones of the subject, or the last hour's warnings and errors of all models, the oldest first.
        batches: those of the subject that ended since the look before, the oldest first.
        last: the sequence of batches to ask for next.
    """

    live: Document | None = None
    absent: str = ""
    subject: Key | None = None
    events: Sequence[Document] = ()
    batches: Sequence[Document] = field(default=())
    last: int = 0


def look(client: DaemonClient, subject: Key | None, after: int) -> News:
    """Ask the daemon once.

    Args:
        subject: a model whose batches and events are asked for, too.
        after: the sequence of batches that the look before ended with; 0 for all that are kept.
    """
    try:
        live = client.json("GET", "/tsctl/live")
        if subject is None:
            asked = {"level": "warning", "since": live["time"] - RECENT, "limit": EVENTS}
            events = client.json("GET", "/tsctl/events", **asked)["events"]
            return News(live, events=events)
        name = "/".join(subject)
        events = client.json("GET", "/tsctl/events", model=name, limit=EVENTS)["events"]
        if not any((model["name"], model["version"]) == subject for model in live["models"]):
            return News(live, subject=subject, events=events, last=after)
        answer = client.json("GET", "/tsctl/batches", model=name, after=after)
        return News(live, "", subject, events, answer["batches"], answer["last"])
    except CliError as error:
        return News(absent=error.message, subject=subject, last=after)


class Poller:
    """Looks at intervals until the block ends.

    Args:
        interval: seconds between two looks.

    Attributes:
        wake: a file descriptor that is readable when there is news.
    """

    def __init__(self, client: DaemonClient, interval: float) -> None:
        self._client = client
        self._interval = interval
        self._subject: Key | None = None
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._due = threading.Event()
        self._ended = False
        self.wake, self._signal = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def __enter__(self) -> Self:
        threading.Thread(target=self._look_often, name="poller", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # The thread may wait for an answer for seconds, and ends with the process: its pipe stays open until then.
        self._ended = True
        self._due.set()

    def show(self, subject: Key | None) -> None:
        """Ask for the batches and events of this model from now on; None for none."""
        if subject != self._subject:
            self._subject = subject
            self._due.set()

    def news(self) -> Iterator[News]:
        """Yield what has come since the last call."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.wake, 4096)
        with contextlib.suppress(queue.Empty):
            while True:
                yield self._news.get_nowait()

    def _look_often(self) -> None:
        last, before = 0, None
        while not self._ended:
            subject = self._subject
            found = look(self._client, subject, last if subject == before else 0)
            last, before = found.last, subject
            self._news.put(found)
            with contextlib.suppress(BlockingIOError):  # the pipe is full: it is readable
                os.write(self._signal, b".")
            self._due.wait(self._interval)
            self._due.clear()
