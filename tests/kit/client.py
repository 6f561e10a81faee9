"""A client: it sends jobs and keeps the answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tsctl.daemon.core.client import NOBODY, ShareHolder
from tsctl.daemon.core.job import Job, Param, Reply


@dataclass
class Client:
    """Sends jobs and keeps the answers, in the order they came.

    Attributes:
        now: the clock of its jobs, in seconds.
        took: request id → seconds from its arrival to its answer.
    """

    now: Callable[[], float] = float
    replies: list[tuple[str, Reply]] = field(default_factory=list)
    took: dict[str, float] = field(default_factory=dict)

    def job(
        self,
        name: str,
        body: bytes = b"",
        arrived: float | None = None,
        headers: Sequence[tuple[str, str]] = (),
        client: ShareHolder = NOBODY,
        **further: Any,
    ) -> Job:
        """Make a job of a client that arrives now, unless `arrived` says when; `further` are those of `Job`."""
        arrived = self.now() if arrived is None else arrived

        def deliver(reply: Reply) -> None:
            self.replies.append((name, reply))
            self.took[name] = self.now() - arrived

        job = Job(name, [Param("body", "", body)], [("x-request-id", name), *headers], arrived, deliver, **further)
        job.client = client
        return job

    def reply(self, name: str) -> Reply:
        """Return the only answer to a request."""
        (reply,) = (reply for other, reply in self.replies if other == name)
        return reply

    @property
    def answered(self) -> list[str]:
        return [name for name, _ in self.replies]

    @property
    def statuses(self) -> dict[str, int]:
        return {name: reply.status for name, reply in self.replies}
